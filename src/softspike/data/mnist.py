"""Fashion-MNIST and its kin: four idx files in a folder, plain or gzipped."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.data.error import DataError
from softspike.data.idx import idx_length, load_idx
from softspike.data.images import PixelRows
from softspike.data.labels import Labels, from_classes

__all__ = ["FASHION_CLASSES", "FASHION_FOLDER", "MNIST_PARTS", "is_mnist", "mnist_labels", "read_mnist"]

FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist puts it
MNIST_PARTS = {"train": "train", "test": "t10k"}
FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"
)  # fmt: skip


def is_mnist(folder: Path) -> bool:
    """Whether a folder holds such files: it has the training images."""
    return _file(folder, "train-images-idx3-ubyte") is not None


def read_mnist(folder: Path, part: str | None) -> PixelRows:
    """The images of a part, 'train' (the default) or 'test'."""
    return PixelRows(_load(folder, f"{_prefix(part)}-images-idx3-ubyte", n_axes=3))


def mnist_labels(folder: Path, part: str | None, names: Sequence[str] | None = None) -> Labels:
    """Their classes, with the names given, or those of Fashion-MNIST where the folder's path says so, or numbers."""
    classes = _load(folder, f"{_prefix(part)}-labels-idx1-ubyte", n_axes=1)
    pictures = _found(folder, f"{_prefix(part)}-images-idx3-ubyte")
    n_images = idx_length(pictures)
    if len(classes) != n_images:
        labels = _found(folder, f"{_prefix(part)}-labels-idx1-ubyte").name
        raise DataError(
            f"{labels} holds {len(classes)} labels and {pictures.name} {n_images} images, expected one label for each "
            "image; get the files again."
        )
    if names is None and "fashion" in str(folder.resolve()).lower() and classes.max(initial=0) < len(FASHION_CLASSES):
        names = FASHION_CLASSES
    return from_classes(classes, names)


def _prefix(part: str | None) -> str:
    if part is not None and part not in MNIST_PARTS:
        raise DataError(f"there is no part {part!r}, expected one of {', '.join(MNIST_PARTS)}; choose one of these.")
    return MNIST_PARTS[part or "train"]


def _file(folder: Path, name: str) -> Path | None:
    return next((folder / (name + suffix) for suffix in (".gz", "") if (folder / (name + suffix)).is_file()), None)


def _found(folder: Path, name: str) -> Path:
    path = _file(folder, name)
    if path is None:
        raise DataError(f"{name}.gz is missing, expected the four files of the set; put it beside the others.")
    return path


def _load(folder: Path, name: str, n_axes: int) -> np.ndarray:
    path = _found(folder, name)
    array = load_idx(path)
    if array.ndim != n_axes or array.dtype != np.uint8:
        raise DataError(
            f"{path.name} holds {array.dtype} values of shape {array.shape}, expected {n_axes} axes of bytes; "
            "get the file again."
        )
    return array
