"""Memory-mapped files: opening them, how the kernel should read them, and whether they are still whole.

Reading a mapped file beyond its end ends the process without a word. So what is small is read instead, and the size of
what is mapped is looked at before every batch.
"""

import mmap
import os
from pathlib import Path

import numpy as np

from softspike.data.error import DataError
from softspike.disk import check_regular

__all__ = ["SMALL", "Whole", "advise", "check_whole", "is_mapped", "open_npy"]

SMALL = 2**26  # bytes; files of .mat and .safetensors up to this are read, longer ones mapped


def open_npy(path: Path) -> np.ndarray:
    """Memory-mapped, and never unpickled: files of Python objects are refused."""
    check_regular(path)
    return np.lib.format.open_memmap(path, mode="r")


class Whole:
    """Called, it raises DataError where a file has become shorter than it was when this was made."""

    def __init__(self, path: Path):
        self.file = open(path, "rb")  # noqa: SIM115  (open for as long as someone asks)
        self.size = os.fstat(self.file.fileno()).st_size

    def __call__(self) -> None:
        _compare(os.fstat(self.file.fileno()).st_size, self.size)


def check_whole(array: np.ndarray) -> None:
    """Raise DataError where the file behind a mapped array has become shorter."""
    mapping = _mapping(array)
    if mapping is not None:
        _compare(mapping.size(), len(mapping))


def _compare(size: int, before: int) -> None:
    if size < before:
        raise DataError(
            f"the file became shorter while it was read (it has {size} of {before} bytes), expected it "
            "to stay as it was; restore it and go on from the last checkpoint."
        )


def advise(array: np.ndarray, numbers: np.ndarray) -> None:
    """Say that the rows `numbers` (ascending) of a memory-mapped array come next; other arrays are left alone.

    Reading ahead around each of a hundred scattered rows of 1 kB can cost a hundred megabytes of disk traffic.
    """
    mapping = _mapping(array)
    if mapping is None or not len(numbers) or not hasattr(mapping, "madvise"):
        return
    scattered = numbers[-1] - numbers[0] >= 2 * len(numbers)
    mapping.madvise(mmap.MADV_RANDOM if scattered else mmap.MADV_NORMAL)


def is_mapped(array: np.ndarray) -> bool:
    """Whether it is read from a file as it is used."""
    return _mapping(array) is not None


def _mapping(array: np.ndarray) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) else None
