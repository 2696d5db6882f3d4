"""Encoded images → rows of pixels in [0, 1], kept as the integers they are until a batch is taken."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from softspike.data.error import DataError, reason
from softspike.data.rows import ArrayRows

__all__ = ["IMAGE_SUFFIXES", "PixelRows", "decode", "read_images", "stack_images"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

_GREY, _DEEP = {"1", "L", "LA"}, {"I", "I;16", "I;16B", "I;16L", "F"}


class PixelRows:
    """Images (n, h, w[, 3]) of unsigned integers, as rows of pixel/largest pixel value."""

    def __init__(self, images: np.ndarray):
        self.rows = ArrayRows(images, images.shape[1:])
        self.image_shape: tuple[int, ...] | None = images.shape[1:]
        self.n_features, self.white = prod(images.shape[1:]), float(np.iinfo(images.dtype).max)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Tensor) -> Tensor:
        return self.rows.take(indices) / self.white


def read_images(files: Sequence[Path]) -> PixelRows:
    """The pixels of image files of one size and mode."""
    return stack_images(((file.name, file) for file in files), len(files))


def stack_images(named: Iterable[tuple[str, Any]], count: int) -> PixelRows:
    """`count` images, each a name for the messages and a file or encoded bytes."""
    stack = np.empty((0,), np.uint8)
    first = ""
    for number, (name, source) in enumerate(named):
        image = decode(name, source)
        if number == 0:
            first, stack = name, np.empty((count, *image.shape), image.dtype)
        elif (image.shape, image.dtype) != (stack.shape[1:], stack.dtype):
            raise DataError(
                f"{name} is {_describe(image)} and {first} is {_describe(stack[0])}, "
                "expected images of one size and mode; convert or leave out the odd ones."
            )
        stack[number] = image
    return PixelRows(stack)


def decode(name: str, source: Path | bytes) -> np.ndarray:
    """Grey (h, w) or colour (h, w, 3), 8-bit or 16-bit; transparency is dropped and palettes are looked up."""
    from PIL import Image

    try:
        with Image.open(BytesIO(source) if isinstance(source, bytes) else source) as image:
            plain = image if image.mode in _DEEP else image.convert("L" if image.mode in _GREY else "RGB")
            pixels = np.asarray(plain)
    except Exception as cause:  # a broken image makes the decoders raise anything at all
        why = reason(cause)
        raise DataError(f"{name} could not be decoded as an image ({why}); replace it or leave it out.") from cause
    if pixels.dtype == np.uint8:
        return pixels
    if pixels.dtype.kind == "f" or pixels.min() < 0 or pixels.max() > 65535:
        raise DataError(f"{name} has {pixels.dtype} pixels, expected 8-bit or 16-bit ones; convert it or use .npy.")
    return pixels.astype(np.uint16)


def _describe(image: np.ndarray) -> str:
    mode = "colour" if image.ndim == 3 else "grey"
    return f"{image.shape[0]}×{image.shape[1]} {mode} of {8 * image.itemsize} bits"
