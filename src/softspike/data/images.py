"""Encoded images → rows of pixels in [0, 1], kept as the integers they are until a batch is taken."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from torch import Tensor

from softspike.data.cache import Allocate, Watch, remembered, signature
from softspike.data.error import DataError, reason
from softspike.data.promise import check_promise
from softspike.data.rows import ArrayRows

__all__ = ["IMAGE_SUFFIXES", "Cropped", "PixelRows", "decode", "decode_images", "read_images"]

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
# Pillow knows dozens of formats, one of which (PostScript) is a program that it would have run.
_FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP")
_MOST_PIXELS = 2**25  # a header may promise any number of them
_LARGE = 2**22  # pixels; beyond, images are decoded one at a time, as each takes many times its size
_one_large = Lock()

# Fewer images are decoded in a second or two: not worth a file.
_WORTH_KEEPING = 2048
_AHEAD, _AHEAD_BYTES = 512, 2**28  # images, and bytes of them, that may wait until it is their turn

_GREY, _AS_THEY_ARE = {"1", "L", "LA"}, {"L", "RGB", "I", "I;16", "I;16B", "I;16L", "F"}


class PixelRows:
    """Images (n, h, w[, 3]) of unsigned integers, as rows of pixel/largest pixel value."""

    def __init__(self, images: np.ndarray):
        self.images, self.rows = images, ArrayRows(images, images.shape[1:])
        self.image_shape: tuple[int, ...] | None = images.shape[1:]
        self.n_features, self.white = prod(images.shape[1:]), float(np.iinfo(images.dtype).max)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, indices: Tensor) -> Tensor:
        return self.rows.take(indices).div_(self.white)


@dataclass(frozen=True)
class Cropped:
    """The central `crop`×`crop` pixels, resized to `size`×`size`."""

    crop: int
    size: int

    def __call__(self, image: Any, name: str) -> Any:
        from PIL import Image

        if min(image.size) < self.crop:
            raise DataError(
                f"{name} is {image.height}×{image.width}, expected at least {self.crop}×{self.crop}; replace it."
            )
        left, top = (image.width - self.crop) // 2, (image.height - self.crop) // 2
        box = (left, top, left + self.crop, top + self.crop)
        return image.crop(box).resize((self.size, self.size), Image.Resampling.BILINEAR)


def read_images(files: Sequence[Path], view: Cropped | None = None, watch: Watch | None = None) -> PixelRows:
    """The pixels of image files of one size and mode."""
    missing = next((file.name for file in files if not file.is_file()), None)
    if missing is not None:
        raise DataError(f"{missing} is missing, expected all {len(files)} images; put it beside the others.")
    stored = sum(file.stat().st_size for file in files)
    source: dict[str, Any] = {"view": asdict(view) if view else None}
    if len(files) >= _WORTH_KEEPING:
        source["files"] = [signature(file) for file in files]
    return decode_images(lambda: ((file.name, file) for file in files), len(files), source, view, watch, stored)


def decode_images(
    named: Callable[[], Iterable[tuple[str, Any]]],
    count: int,
    source: Mapping[str, Any],
    view: Cropped | None = None,
    watch: Watch | None = None,
    stored: int = 0,
) -> PixelRows:
    """`count` images, each a name for the messages and a file or encoded bytes; many are decoded once for all runs.

    The files that they lie in have `stored` bytes, and must be able to hold so many.
    """

    def make(allocate: Allocate) -> np.ndarray:
        def bounded(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
            check_promise(prod(shape) * dtype.itemsize, stored, f"{count} images")
            return allocate(shape, dtype)

        return _stack(_decoded(named(), view), count, bounded, watch)

    return PixelRows(remembered(source, make) if count >= _WORTH_KEEPING else make(np.empty))


def _decoded(named: Iterable[tuple[str, Any]], view: Cropped | None) -> Iterator[tuple[str, np.ndarray]]:
    """In order, on all cores, after the first alone, which tells how large they are."""
    images, ahead = iter(named), _AHEAD
    for name, source in islice(images, 1):
        first = decode(name, source, view)
        ahead = min(_AHEAD, max(_AHEAD_BYTES // max(first.nbytes, 1), 1))
        yield name, first
    pool, waiting = ThreadPoolExecutor(os.cpu_count()), deque[tuple[str, Future[np.ndarray]]]()
    try:
        for name, source in images:
            waiting.append((name, pool.submit(decode, name, source, view)))
            if len(waiting) > ahead:
                name, image = waiting.popleft()
                yield name, image.result()
        while waiting:
            name, image = waiting.popleft()
            yield name, image.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _stack(images: Iterable[tuple[str, np.ndarray]], count: int, allocate: Allocate, watch: Watch | None) -> np.ndarray:
    stack = np.empty((0,), np.uint8)
    first, found = "", 0
    for number, (name, image) in enumerate(images):
        if number == 0:
            first, stack = name, allocate((count, *image.shape), image.dtype)
        elif (image.shape, image.dtype) != (stack.shape[1:], stack.dtype):
            raise DataError(
                f"{name} is {_describe(image)} and {first} is {_describe(stack[0])}, "
                "expected images of one size and mode; convert or leave out the odd ones."
            )
        elif number == count:
            raise DataError(f"there are more images than the {count} that were announced; write the file again.")
        stack[number] = image
        if watch is not None:
            watch(number + 1, count)
        found = number + 1
    if found != count:
        raise DataError(f"there are {found} images where {count} were announced; check that the file is complete.")
    return stack


def decode(name: str, source: Path | bytes, view: Cropped | None = None) -> np.ndarray:
    """Grey (h, w) or colour (h, w, 3), 8-bit or 16-bit; transparency is dropped and palettes are looked up."""
    from PIL import Image

    try:
        # From memory: a chunk that says it holds gigabytes cannot make a read ask for them.
        encoded = source if isinstance(source, bytes) else source.read_bytes()
        with Image.open(BytesIO(encoded), formats=_FORMATS) as image:
            if prod(image.size) > _MOST_PIXELS:
                given = f"{name} is {image.height}×{image.width}"
                raise DataError(f"{given}, expected at most {_MOST_PIXELS} pixels; cut it into patches or shrink it.")
            with _one_large if prod(image.size) > _LARGE else nullcontext():
                plain = image if image.mode in _AS_THEY_ARE else image.convert("L" if image.mode in _GREY else "RGB")
                pixels = np.asarray(plain if view is None else view(plain, name))
    except DataError:
        raise
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
