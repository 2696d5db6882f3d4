"""Decoded images are kept in one file for each data set: decoding happens once, and later runs map the file.

The cache is $SOFTSPIKE_CACHE, or softspike/ in $XDG_CACHE_HOME or ~/.cache: data folders are often read-only or shared.
A file is named by a hash of what it was made from (paths, sizes, times, the way of decoding), appears whole or not at
all, and is used only where its checksum agrees. Deleting the folder costs nothing but the time to decode again.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softspike.data.mapped import open_npy
from softspike.disk import read_whole

__all__ = ["Allocate", "Watch", "cache_folder", "remembered", "signature"]

Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]
Watch = Callable[[int, int], None]  # called with (images decoded, images in all)

_VERSION = 1  # of the way images are decoded: raise it when pixels change


def cache_folder() -> Path:
    given = os.environ.get("SOFTSPIKE_CACHE")
    return Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "softspike"


def signature(path: Path) -> tuple[str, int, int]:
    """A file's path, size and time of change: what tells that it is still the same."""
    state = path.stat()
    return str(path.resolve()), state.st_size, state.st_mtime_ns


def remembered(
    source: Mapping[str, Any], make: Callable[[Allocate], np.ndarray], folder: Path | None = None
) -> np.ndarray:
    """The array that `make` fills, mapped from the cache where it was made before from the same source.

    Where the cache cannot be written (no room, no permission) the array is made in memory, as if there were none.
    """
    folder = cache_folder() if folder is None else folder
    name = hashlib.sha256(json.dumps([_VERSION, dict(source)], sort_keys=True).encode()).hexdigest()[:32]
    path = folder / f"{name}.npy"
    found = _verified(path)
    if found is not None:
        return found
    temporary = folder / f".{name}.{os.getpid()}.tmp"
    try:
        array = make(lambda shape, dtype: _allocate(temporary, shape, dtype))
        if not isinstance(array, np.memmap):
            return array
        array.flush()
        digest = _digest(temporary, array.offset)
        del array
        os.replace(temporary, path)
        _write_digest(path, digest)
    finally:
        _remove(temporary)
    return open_npy(path)


def _allocate(temporary: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        array = np.lib.format.open_memmap(temporary, "w+", dtype, shape)
        with open(temporary, "r+b") as file:  # a mapped file on a full disk would end the process on first touch
            os.posix_fallocate(file.fileno(), 0, temporary.stat().st_size)
    except (OSError, AttributeError):
        _remove(temporary)
        return np.empty(shape, dtype)
    return array


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _digest_path(path: Path) -> Path:
    return path.with_suffix(".sha256")


def _digest(path: Path, first: int) -> str:
    """Of the values, which begin at byte `first`; read, as a mapped file that is cut short would end the process."""
    hashed = hashlib.sha256()
    with open(path, "rb") as file:
        file.seek(first)
        while part := file.read(2**20):
            hashed.update(part)
    return hashed.hexdigest()


def _write_digest(path: Path, digest: str) -> None:
    temporary = _digest_path(path).with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(digest)
    os.replace(temporary, _digest_path(path))


def _verified(path: Path) -> np.ndarray | None:
    with contextlib.suppress(OSError, ValueError):
        array = open_npy(path)
        if isinstance(array, np.memmap) and read_whole(_digest_path(path), 64).decode() == _digest(path, array.offset):
            return array
    return None
