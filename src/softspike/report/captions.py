"""Images with words below them."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.figure import picture_shape, save_png

__all__ = ["save_captioned"]

_SIDE, _LINE, _GAP, _SIZE = 96, 13, 6, 11


def save_captioned(
    path: Path,
    images: np.ndarray,
    captions: Sequence[str],
    image_shape: tuple[int, ...] | None,
    columns: int = 8,
) -> None:
    """A PNG of images (n, D) in [0, 1], enlarged to about 96 pixels, each above its lines of words."""
    from PIL import Image, ImageDraw, ImageFont

    shape = picture_shape(images.shape[1], image_shape)
    zoom, font = max(1, _SIDE // max(shape[:2])), ImageFont.load_default(_SIZE)
    longest = max(font.getlength(line) for caption in captions for line in caption.split("\n"))
    height, width = shape[0] * zoom, max(shape[1] * zoom, math.ceil(longest))
    n_lines = max(caption.count("\n") + 1 for caption in captions)
    rows = -(-len(images) // columns)
    step_down, step_right = height + n_lines * _LINE + 2 * _GAP, width + _GAP
    page = Image.new("RGB", (min(columns, len(images)) * step_right + _GAP, rows * step_down + _GAP), "white")
    draw = ImageDraw.Draw(page)
    for number, (image, caption) in enumerate(zip(images, captions, strict=True)):
        top, left = _GAP + number // columns * step_down, _GAP + number % columns * step_right
        pixels = (255 * image.reshape(shape).clip(0, 1)).round().astype(np.uint8)
        tile = Image.fromarray(pixels.squeeze() if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
        page.paste(tile.resize((shape[1] * zoom, height), Image.Resampling.NEAREST).convert("RGB"), (left, top))
        draw.multiline_text((left, top + height + 2), caption, fill="black", font=font, spacing=1)
    save_png(path, page)
