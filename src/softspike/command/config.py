"""A file of parameters."""

import json
from pathlib import Path
from typing import Any

from softspike.disk import read_whole

__all__ = ["config_file"]

_LONGEST = 2**20  # bytes


def config_file(path: Path | None) -> dict[str, Any]:
    """The parameters in a JSON file; ValueError where it is none."""
    if path is None:
        return {}
    try:
        content = json.loads(read_whole(path, _LONGEST))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot read the configuration {path}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"the configuration {path} holds a {type(content).__name__}, expected an object of parameters")
    return content
