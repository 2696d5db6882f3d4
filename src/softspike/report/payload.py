"""Data inside a page: arrays as base64, everything else as JSON that no text in it can break out of."""

import base64
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Block", "blocks_of", "script_json"]

_TYPES = {
    "int8": "Int8",
    "uint8": "Uint8",
    "uint16": "Uint16",
    "int32": "Int32",
    "uint32": "Uint32",
    "float32": "Float32",
}


class Block(NamedTuple):
    """One array as the page holds it."""

    id: str
    type: str  # the JavaScript typed array, without "Array"
    shape: tuple[int, ...]
    text: str  # base64 of the little-endian bytes


def blocks_of(prefix: str, arrays: Mapping[str, np.ndarray]) -> list[Block]:
    """The arrays under ids of their own."""
    blocks = []
    for name, array in arrays.items():
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        text = base64.b64encode(little.tobytes()).decode("ascii")
        blocks.append(Block(f"{prefix}-{name}", _TYPES[array.dtype.name], array.shape, text))
    return blocks


def script_json(content: Any) -> str:
    """JSON that is safe inside <script>: no tag, entity or line separator can appear in it, and NaN becomes null."""
    text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if np.isfinite(content) else None
    if isinstance(content, Mapping):
        return {str(key): _finite(value) for key, value in content.items()}
    return [_finite(value) for value in content] if isinstance(content, list | tuple) else content
