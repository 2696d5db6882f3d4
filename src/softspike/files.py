"""Single files of a run folder: written whole or not at all, checked when they are read."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from softspike.disk import check_regular, read_whole, write_atomically

__all__ = [
    "FORMAT", "RunError", "digest", "is_count", "is_number", "read_object", "read_tensors", "whole_lines",
    "write_tensors", "wrong_format",
]  # fmt: skip

FORMAT = 1
_LONGEST_OBJECT, _LONGEST_LINE = 2**24, 2**16  # bytes; what softspike writes is a thousand times shorter


class RunError(ValueError):
    """A run folder is missing, damaged, in use, or of another format."""


def read_object(path: Path) -> dict[str, Any]:
    """The object that a JSON file holds."""
    try:
        content = json.loads(read_whole(path, _LONGEST_OBJECT))
    except (ValueError, RecursionError, OSError) as error:
        raise RunError(f"{path} is not readable as JSON ({error}); restore it or train again") from error
    if not isinstance(content, dict):
        raise RunError(f"{path} holds a JSON {type(content).__name__}, expected an object; restore it or train again")
    return content


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    named = {**metadata, "format": str(FORMAT)}
    signed = {**named, "sha256": digest(plain, named)}
    # One entry only: several are written in a random order, and the same model should be the same bytes.
    write_atomically(path, save(plain, {"softspike": json.dumps(signed, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata, after their checksum agrees. Read, not mapped: a file cut short would end the process."""
    if not path.exists():
        raise RunError(f"{path} does not exist; the run did not finish, or this is not a run folder")
    try:
        content = read_whole(path)
        tensors, metadata = load(content), _metadata(content)
    except Exception as error:  # the library raises much besides SafetensorError on a broken file
        why = " ".join(str(error).split()) or type(error).__name__
        raise RunError(f"{path} is damaged ({why}); restore it or train again") from error
    if not isinstance(metadata, dict):
        raise RunError(f"{path} is damaged (its metadata is no object); restore it or train again")
    if metadata.get("format") != str(FORMAT):
        raise RunError(wrong_format(path, metadata.get("format")))
    if metadata.pop("sha256", None) != digest(tensors, metadata):
        raise RunError(f"{path} is damaged (its checksum does not agree); restore it or train again")
    return tensors, metadata


def _metadata(content: bytes) -> Any:
    """What softspike wrote beside the tensors; the library hands out the tensors alone."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads((header.get("__metadata__") or {}).get("softspike", "{}"))


def wrong_format(path: Path, found: Any) -> str:
    """What is said of a file of another version."""
    return (
        f"{path} has format {found!r}, this version of softspike reads format {FORMAT}; "
        "train again, or use the version that wrote it"
    )


def digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """What tensors and metadata are signed with: SHA-256 of all names, dtypes, shapes and values."""
    hashed = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        hashed.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
        hashed.update(value.reshape(-1).view(torch.uint8).numpy().data if value.numel() else b"")
    return hashed.hexdigest()


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of numbers up to the first that is torn or holds something else."""
    check_regular(path)
    lines = []
    with open(path, "rb") as file:
        while line := file.readline(_LONGEST_LINE):
            try:
                content = json.loads(line)
            except (ValueError, RecursionError):
                break
            if not isinstance(content, dict) or not is_count(content.get("step")):
                break
            if not all(value is None or is_number(value) for value in content.values()):
                break
            lines.append(content)
    return lines


def is_count(value: Any) -> bool:
    """A whole number from 0, small enough to be one of anything."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def is_number(value: Any) -> bool:
    """One that a float can hold."""
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**1000)
