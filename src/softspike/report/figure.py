"""Pictures of dictionaries."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from softspike.disk import write_atomically

__all__ = ["dictionary_order", "mosaic", "picture_shape", "plot_dictionary", "save_dictionary", "save_png"]


def dictionary_order(components: np.ndarray, usage: np.ndarray | None = None) -> np.ndarray:
    """Atoms by falling norm; equal norms (unit-norm dictionaries) by falling usage."""
    norms = np.round(np.linalg.norm(components, axis=1), 6)
    usage = np.zeros(len(components)) if usage is None else usage
    return np.lexsort((-usage, -norms))


def picture_shape(n_features: int, image_shape: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """The shape atoms are drawn in: the data's own if it is a picture, a square where there is one, else one row."""
    if image_shape and (len(image_shape) == 2 or (len(image_shape) == 3 and image_shape[2] in (1, 3))):
        return image_shape
    side = math.isqrt(n_features)
    return (side, side) if side * side == n_features else (1, n_features)


def mosaic(components: np.ndarray, shape: tuple[int, ...], gap: int = 1, columns: int | None = None) -> np.ndarray:
    """Atoms (d, D) as tiles of one picture in [0, 1], each scaled by its own largest absolute value, zero mid-grey."""
    tiles = components.reshape(len(components), *shape)
    if tiles.ndim == 3:
        tiles = tiles[..., None]
    n, height, width, channels = tiles.shape
    columns = columns or math.ceil(math.sqrt(n * height / width))
    rows = math.ceil(n / columns)
    picture = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, channels), 1.0)
    peak = np.abs(tiles).reshape(n, -1).max(1).clip(1e-12)
    for i, tile in enumerate(tiles):
        top, left = gap + (i // columns) * (height + gap), gap + (i % columns) * (width + gap)
        picture[top : top + height, left : left + width] = 0.5 + 0.5 * tile / peak[i]
    return picture[..., 0] if channels == 1 else picture


def save_dictionary(
    path: Path, components: np.ndarray, image_shape: tuple[int, ...] | None = None, usage: np.ndarray | None = None
) -> None:
    """A PNG of all atoms, sorted by norm, enlarged so that single pixels can be seen."""
    from PIL import Image

    order = dictionary_order(components, usage)
    picture = mosaic(components[order], picture_shape(components.shape[1], image_shape))
    pixels = (255 * picture.clip(0, 1)).round().astype(np.uint8)
    zoom = max(1, 800 // max(pixels.shape[:2]))
    image = Image.fromarray(pixels)
    save_png(path, image.resize((image.width * zoom, image.height * zoom), Image.Resampling.NEAREST))


def save_png(path: Path, image: Any) -> None:
    """A Pillow image as a file that appears whole; a link in its place is replaced, not followed."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    write_atomically(path, buffer.getvalue())


def plot_dictionary(
    components: np.ndarray, image_shape: tuple[int, ...] | None = None, order: np.ndarray | None = None, ax: Any = None
) -> Any:
    """Draw atoms (d, D) with matplotlib and return the axes: tiles where they are pictures, else a map of d × D."""
    from matplotlib import pyplot

    atoms = components[dictionary_order(components) if order is None else order]
    shape = picture_shape(atoms.shape[1], image_shape)
    if math.prod(shape) != atoms.shape[1]:
        raise ValueError(f"image_shape is {image_shape}, expected one of {atoms.shape[1]} features; check the shape")
    ax = pyplot.gca() if ax is None else ax
    if shape[0] == 1:
        peak = np.abs(atoms).max() or 1.0
        ax.imshow(atoms, cmap="RdBu_r", vmin=-peak, vmax=peak, aspect="auto", interpolation="nearest")
        ax.set(xlabel="feature", ylabel="atom")
    else:
        ax.imshow(mosaic(atoms, shape), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set_axis_off()
    return ax
