"""Memory-mapped files: opening them, and how the kernel should read them."""

import mmap
from pathlib import Path

import numpy as np

from softspike.data.error import DataError

__all__ = ["advise", "open_npy"]


def open_npy(path: Path) -> np.ndarray:
    """Memory-mapped, and never unpickled: files of Python objects are refused."""
    return np.lib.format.open_memmap(path, mode="r")


def advise(array: np.ndarray, numbers: np.ndarray) -> None:
    """Say that the rows `numbers` (ascending) of a memory-mapped array come next; other arrays are left alone.

    Reading ahead around each of a hundred scattered rows of 1 kB can cost a hundred megabytes of disk traffic.
    """
    mapping = _mapping(array)
    if mapping is None or not len(numbers) or not hasattr(mapping, "madvise"):
        return
    if mapping.size() < len(mapping):  # reading on would end the process, without a word
        raise DataError(
            f"the file became shorter while it was read (it has {mapping.size()} of {len(mapping)} bytes), expected it "
            "to stay as it was; restore it and go on from the last checkpoint."
        )
    scattered = numbers[-1] - numbers[0] >= 2 * len(numbers)
    mapping.madvise(mmap.MADV_RANDOM if scattered else mmap.MADV_NORMAL)


def _mapping(array: np.ndarray) -> mmap.mmap | None:
    base: object = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
