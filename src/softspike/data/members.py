"""The arrays of an .npz archive: what one of them promises is checked before it is unpacked."""

import zipfile
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from softspike.data.error import DataError
from softspike.data.promise import check_promise

__all__ = ["check_member"]

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # all that numpy writes; others expand without bound


def check_member(archive: zipfile.ZipFile, key: str, path: Path) -> None:
    """Raise DataError where the array `key` is packed in an unknown way or promises more than it can hold."""
    names = archive.namelist()
    info = archive.getinfo(f"{key}.npy" if f"{key}.npy" in names else key)
    if info.compress_type not in _PACKINGS:
        raise DataError(f"the array {key!r} is packed in a way that numpy does not use; write it with numpy.savez.")
    check_promise(info.file_size, min(info.compress_size, path.stat().st_size), f"the array {key!r}")
    with archive.open(info) as file:
        promised = _promised(file)
    if promised > info.file_size:
        raise DataError(
            f"the array {key!r} promises {promised} bytes of values but holds {info.file_size}; write the file again."
        )


def _promised(file: IO[bytes]) -> int:
    """Bytes of values that the header of an .npy file announces."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return prod(shape) * dtype.itemsize
