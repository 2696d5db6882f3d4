"""idx files, the format of MNIST and its kin, plain or gzipped. A header that promises too much is refused unread."""

import gzip
import struct
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from softspike.data.error import DataError

__all__ = ["is_idx", "load_idx"]

_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
_MOST_AXES = 4
# Deflate cannot expand a byte into more than 1032.
_MOST_EXPANSION = 1032


def is_idx(path: Path) -> bool:
    """By its name: something-idx3-ubyte, gzipped or not."""
    return path.suffix.lower() in (".idx", ".gz") or path.name.lower().endswith("-ubyte")


def load_idx(path: Path) -> np.ndarray:
    """The array of an idx file: two zero bytes, a type, the number of axes, their lengths, then the values."""
    packed = path.suffix.lower() == ".gz"
    most = path.stat().st_size * (_MOST_EXPANSION if packed else 1)
    with gzip.open(path) if packed else open(path, "rb") as file:
        dtype, shape = _header(file, path.name)
        promised = prod(shape) * dtype.itemsize
        if promised > most:
            raise DataError(
                f"{path.name} promises {promised} bytes of values but can hold at most {most}; get the file again."
            )
        content = file.read(promised + 1)
    if len(content) != promised:
        given = "more" if len(content) > promised else f"{len(content)}"
        raise DataError(f"{path.name} holds {given} bytes of values, its header says {promised}; get the file again.")
    return np.frombuffer(content, dtype).reshape(shape)


def _header(file: IO[Any] | gzip.GzipFile, name: str) -> tuple[np.dtype, tuple[int, ...]]:
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in _TYPES or not 1 <= start[3] <= _MOST_AXES:
        raise DataError(f"{name} starts with {start.hex() or 'nothing'}, expected the magic of an idx file, 0000tt0n; "
                        "give a file such as train-images-idx3-ubyte.gz.")  # fmt: skip
    lengths = file.read(4 * start[3])
    if len(lengths) < 4 * start[3]:
        raise DataError(f"{name} ends inside its header, expected {start[3]} lengths; get the file again.")
    return np.dtype(_TYPES[start[2]]), struct.unpack(f">{start[3]}I", lengths)
