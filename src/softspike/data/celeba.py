"""CelebA in its official layout: img_align_celeba/, list_eval_partition.txt, list_attr_celeba.txt."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from softspike.data.cache import Watch
from softspike.data.error import DataError
from softspike.data.images import Cropped, PixelRows, read_images
from softspike.data.labels import Labels
from softspike.disk import read_whole

__all__ = ["CELEBA_PARTS", "celeba_labels", "is_celeba", "read_celeba"]

CELEBA_PARTS = {"train": 0, "valid": 1, "test": 2}
_PICTURES, _PARTITION, _ATTRIBUTES = "img_align_celeba", "list_eval_partition.txt", "list_attr_celeba.txt"
_LONGEST_LIST = 2**28  # bytes; the official one of attributes has a tenth of it
_FACE = Cropped(crop=140, size=64)


def is_celeba(folder: Path) -> bool:
    return (folder / _PICTURES).is_dir()


def read_celeba(folder: Path, part: str | None, watch: Watch | None = None) -> PixelRows:
    """Faces of a part ('train', the default, 'valid' or 'test'), the central 140×140 pixels resized to 64×64."""
    return read_images([folder / _PICTURES / name for name in _names(folder, part)], _FACE, watch)


def celeba_labels(folder: Path, part: str | None) -> Labels:
    """The forty attributes of the same faces, in the same order."""
    lines = _lines(folder, _ATTRIBUTES)
    next(lines)  # the number of faces
    attributes = tuple(next(lines))
    signs = {name: signs for name, *signs in lines}
    names = _names(folder, part)
    for name in names:
        if len(signs.get(name, ())) != len(attributes) or not set(signs[name]) <= {"1", "-1"}:
            raise DataError(f"{_ATTRIBUTES} has no {len(attributes)} values of 1 or -1 for {name}; get the file again.")
    return Labels(attributes, np.array([[sign == "1" for sign in signs[name]] for name in names]))


def _names(folder: Path, part: str | None) -> list[str]:
    if part is not None and part not in CELEBA_PARTS:
        raise DataError(f"there is no part {part!r}, expected one of {', '.join(CELEBA_PARTS)}; choose one of these.")
    wanted, names = str(CELEBA_PARTS[part or "train"]), []
    for words in _lines(folder, _PARTITION):
        if len(words) != 2 or words[1] not in ("0", "1", "2") or Path(words[0]).name != words[0]:
            raise DataError(
                f"{_PARTITION} has the line {' '.join(words)!r}, expected a file name and 0, 1 or 2; get it again."
            )
        if words[1] == wanted:
            names.append(words[0])
    if not names:
        raise DataError(f"{_PARTITION} names no picture of the part {part or 'train'!r}; get the file again.")
    return names


def _lines(folder: Path, name: str) -> Iterator[list[str]]:
    try:
        text = read_whole(folder / name, _LONGEST_LIST).decode()
    except (OSError, ValueError) as cause:
        raise DataError(
            f"{name} is missing or unreadable, expected the official file; put it beside {_PICTURES}."
        ) from cause
    return (line.split() for line in text.splitlines() if line.strip())
