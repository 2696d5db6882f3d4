"""idx files, the format of MNIST and its kin, plain or gzipped. A header that promises too much is refused unread."""

import gzip
import struct
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from softspike.data.error import DataError
from softspike.data.promise import check_promise

__all__ = ["is_idx", "load_idx"]

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MOST_AXES = 4
_AT_ONCE = 2**20  # bytes


def is_idx(path: Path) -> bool:
    """By its name: something-idx3-ubyte, gzipped or not."""
    return path.suffix.lower() in (".idx", ".gz") or path.name.lower().endswith("-ubyte")


def load_idx(path: Path) -> np.ndarray:
    """The array of an idx file: two zero bytes, a type, the number of axes, their lengths, then the values."""
    packed, stored = path.suffix.lower() == ".gz", path.stat().st_size
    with gzip.open(path) if packed else open(path, "rb") as file:
        dtype, shape = _header(file, path.name)
        promised = prod(shape) * dtype.itemsize
        if packed:
            check_promise(promised, stored, path.name)
        elif promised > stored:
            raise DataError(
                f"{path.name} promises {promised} bytes of values but can hold at most {stored}; get the file again."
            )
        content = np.empty(promised, np.uint8)
        found = _filled(content, file)
        more = file.read(1)
    if found != promised or more:
        given = "more" if more else f"{found}"
        raise DataError(f"{path.name} holds {given} bytes of values, its header says {promised}; get the file again.")
    return content.view(dtype).reshape(shape)


def _filled(content: np.ndarray, file: IO[Any] | gzip.GzipFile) -> int:
    """How many bytes of the file went into the array; a `read` of all would hold them twice."""
    found, room = 0, content.data
    while found < len(room) and (got := file.readinto(room[found : found + _AT_ONCE])):  # type: ignore[union-attr]
        found += got
    return found


def _header(file: IO[Any] | gzip.GzipFile, name: str) -> tuple[np.dtype, tuple[int, ...]]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 1 <= start[3] <= _MOST_AXES:
        raise DataError(f"{name} starts with {start.hex() or 'nothing'}, expected the magic of an idx file, 0000tt0n; "
                        "give a file such as train-images-idx3-ubyte.gz.")  # fmt: skip
    lengths = file.read(4 * start[3])
    if len(lengths) < 4 * start[3]:
        raise DataError(f"{name} ends inside its header, expected {start[3]} lengths; get the file again.")
    return np.dtype(_TYPES[start[2]]), struct.unpack(f">{start[3]}I", lengths)
