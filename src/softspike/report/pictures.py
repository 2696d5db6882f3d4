"""Pictures of images: rows of them, each as it is, on a common grid."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.figure import picture_shape, save_png

__all__ = ["contrast", "grid", "save_grid"]


def contrast(atoms: np.ndarray) -> np.ndarray:
    """Atoms (n, D) of any scale as pictures in [0, 1]: zero is mid-grey, each one's largest absolute value an end."""
    peak = np.abs(atoms).max(1, keepdims=True).clip(1e-12)
    return 0.5 + 0.5 * atoms / peak


def grid(rows: Sequence[np.ndarray], image_shape: tuple[int, ...] | None, gap: int = 2) -> np.ndarray:
    """Rows of images, each (n, D) in [0, 1], as one picture (height, width[, 3]); short rows end in white."""
    shape = picture_shape(rows[0].shape[1], image_shape)
    height, width, channels = (*shape, 1)[:3]
    longest = max(len(row) for row in rows)
    picture = np.ones((len(rows) * (height + gap) + gap, longest * (width + gap) + gap, channels))
    for number, row in enumerate(rows):
        for place, image in enumerate(row):
            top, left = gap + number * (height + gap), gap + place * (width + gap)
            picture[top : top + height, left : left + width] = image.reshape(height, width, channels).clip(0, 1)
    return picture[..., 0] if channels == 1 else picture


def save_grid(path: Path, rows: Sequence[np.ndarray], image_shape: tuple[int, ...] | None) -> None:
    """A PNG of rows of images, enlarged where they are small."""
    from PIL import Image

    pixels = (255 * grid(rows, image_shape)).round().astype(np.uint8)
    zoom = max(1, 900 // max(pixels.shape[:2]))
    image = Image.fromarray(pixels)
    save_png(path, image.resize((image.width * zoom, image.height * zoom), Image.Resampling.NEAREST))
