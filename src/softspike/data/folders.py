"""Folders → rows: .npy shards, memory-mapped, images, or a data set in its official layout."""

from pathlib import Path

import numpy as np

from softspike.data.celeba import is_celeba, read_celeba
from softspike.data.error import DataError, reason
from softspike.data.images import IMAGE_SUFFIXES, read_images
from softspike.data.mapped import open_npy
from softspike.data.mnist import is_mnist, read_mnist
from softspike.data.rows import ShardRows, StoredRows
from softspike.data.watch import Unwatched, Watch

__all__ = ["read_folder", "refuse_key"]


def read_folder(path: Path, key: str | None, watch: Watch = Unwatched()) -> StoredRows:
    """Shards (.npy) or images, in the order of their names; of CelebA and the MNISTs, the part that `key` names."""
    if is_celeba(path):
        return read_celeba(path, key, watch)
    if is_mnist(path):
        return read_mnist(path, key)
    refuse_key(key, "a folder")
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    shards = [file for file in files if file.suffix.lower() == ".npy"]
    images = [file for file in files if file.suffix.lower() in IMAGE_SUFFIXES]
    if bool(shards) == bool(images):
        held = f"{len(shards)} .npy shards and {len(images)} images" if shards else "neither .npy shards nor images"
        known = f".npy files or images ({', '.join(IMAGE_SUFFIXES)})"
        raise DataError(f"the folder holds {held}, expected either {known}; give a folder with one kind of data.")
    return read_images(images, watch=watch) if images else _read_shards(shards)


def _read_shards(files: list[Path]) -> ShardRows:
    arrays = [_open_shard(file) for file in files]
    width = arrays[0].shape[1:]
    for file, array in zip(files, arrays, strict=True):
        if array.ndim < 2 or array.shape[1:] != width:
            needed = ", ".join(map(str, width)) or "n_features"
            raise DataError(
                f"the shard {file.name} has shape {array.shape}, expected (n_samples, {needed}) in every shard; "
                "convert it or leave it out."
            )
    return ShardRows(arrays, width if len(width) > 1 else None)


def _open_shard(file: Path) -> np.ndarray:
    try:
        return open_npy(file)
    except (ValueError, EOFError, OSError) as cause:
        why = reason(cause)
        raise DataError(f"the shard {file.name} could not be read ({why}); replace it or leave it out.") from cause


def refuse_key(key: str | None, what: str) -> None:
    if key is not None:
        raise DataError(f"the key {key!r} was given, expected none as {what} holds a single array; leave the key out.")
