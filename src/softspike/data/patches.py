"""Images → patches: whitening, and random positions without repetition."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from softspike.data.error import DataError

__all__ = ["Patches", "draw_positions", "extract_patches", "patches_at", "whiten"]

Images = np.ndarray | Sequence[np.ndarray]


class Patches(NamedTuple):
    train: np.ndarray  # (n_train, size²) float32
    valid: np.ndarray  # (n_valid, size²) float32


def whiten(image: np.ndarray, cutoff: float = 0.4) -> np.ndarray:
    """Filtered by R(f) = f·exp(−(f/f₀)⁴), then scaled to mean 0 and variance 1.

    f is in cycles per pixel and f₀ = cutoff, which for a square picture of side N is f₀ = cutoff·N cycles per picture.
    The rise undoes the 1/f amplitude of natural images; the fall removes the corners and the noise of high frequencies.
    """
    if image.ndim != 2:
        raise DataError(f"the image has shape {image.shape}, expected (height, width); convert it to grey first.")
    if not np.ptp(image) > 0:
        raise DataError("the image is constant or not finite, expected one with contrast; leave it out.")
    height, width = image.shape
    f = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    spectrum = np.fft.rfft2(image.astype(np.float64)) * f * np.exp(-((f / cutoff) ** 4))
    filtered = np.fft.irfft2(spectrum, s=image.shape)
    return (filtered - filtered.mean()) / filtered.std()


def extract_patches(
    images: Images, n_patches: int, size: int, seed: int | Sequence[int], border: int = 4
) -> np.ndarray:
    """n patches at distinct random positions, uniform over all images, at least `border` pixels from the edges.

    (n_patches, size²) float32. The border leaves out what whitening wraps around from the opposite edge.
    """
    return patches_at(images, draw_positions(images, n_patches, size, seed, border), size, border)


def draw_positions(images: Images, n_patches: int, size: int, seed: int | Sequence[int], border: int = 4) -> np.ndarray:
    """Distinct position numbers in random order; they run through the positions of the first image, then the next."""
    available = sum(rows * columns for rows, columns in _grids(images, size, border))
    if n_patches > available:
        raise DataError(
            f"{n_patches} patches of {size}×{size} were asked for, the images have {available} positions; "
            "ask for fewer or smaller patches."
        )
    return np.random.default_rng(seed).choice(available, n_patches, replace=False)


def patches_at(images: Images, positions: np.ndarray, size: int, border: int = 4) -> np.ndarray:
    """The patches at the given position numbers, (n, size²) float32."""
    patches = np.empty((len(positions), size * size), np.float32)
    grids = _grids(images, size, border)
    first = np.concatenate([[0], np.cumsum([n_rows * n_columns for n_rows, n_columns in grids])])
    ordered = np.argsort(positions)  # those of each image in a row
    cuts = np.searchsorted(positions[ordered], first)
    for number, (image, (_, n_columns)) in enumerate(zip(images, grids, strict=True)):
        here = ordered[cuts[number] : cuts[number + 1]]
        if len(here):
            row, column = np.divmod(positions[here] - first[number], n_columns)
            windows = sliding_window_view(image, (size, size))
            patches[here] = windows[row + border, column + border].reshape(len(here), size * size)
    return patches


def _grids(images: Images, size: int, border: int) -> list[tuple[int, int]]:
    """How many positions each image has, down and across."""
    shapes = [np.shape(image) for image in images]
    if any(len(shape) != 2 for shape in shapes):
        raise DataError(
            f"the images have shapes {shapes[:3]}, expected (height, width) each; convert them to grey first."
        )
    return [(max(0, h - 2 * border - size + 1), max(0, w - 2 * border - size + 1)) for h, w in shapes]
