"""The ten whitened natural images of Olshausen & Field (1996): how to get them, a check, patches of them."""

from os import PathLike

import numpy as np
import torch

from softspike.data.arrays import read_rows
from softspike.data.error import DataError
from softspike.data.patches import Patches, draw_positions, patches_at
from softspike.data.rows import ArrayRows
from softspike.data.standardise import Standardiser

__all__ = ["EXPLANATION", "load_olshausen", "olshausen_patches"]

EXPLANATION = """\
The whitened images are the ten 512×512 natural scenes on which B. A. Olshausen and D. J. Field learned the first sparse
code ("Emergence of simple-cell receptive field properties by learning a sparse code for natural images", Nature 381,
1996). They are known as IMAGES.mat and are part of the authors' sparsenet package:

    http://www.rctn.org/bruno/sparsenet/   →   IMAGES.mat, one array IMAGES of shape (512, 512, 10)

They are free for your own experiments but not for redistribution, so softspike does not contain them. Download
IMAGES.mat (not IMAGES_RAW.mat, which is not whitened) and give its path. A .npy file of shape (10, 512, 512) with the
same values also works.

A file is accepted where it holds ten images of 512×512, each of mean 0 (within 0.001), their mean variance is 0.0791
(within 1 %), and the values run from −2.03 to 2.86 (within 0.01).
"""

_SHAPE = (10, 512, 512)
_VARIANCE, _LOWEST, _HIGHEST = 0.0791, -2.03, 2.86


def load_olshausen(path: str | PathLike[str]) -> np.ndarray:
    """(10, 512, 512) float32 from IMAGES.mat or an .npy file, verified."""
    rows = read_rows(path)
    images = rows.array if isinstance(rows, ArrayRows) else np.empty(0)
    if images.shape == (512, 512, 10):
        images = np.moveaxis(images, -1, 0)
    if images.shape != _SHAPE:
        raise DataError(
            f"{path} holds an array of shape {images.shape}, expected {_SHAPE} or (512, 512, 10); "
            "give IMAGES.mat or the same images as .npy."
        )
    images = np.ascontiguousarray(images, dtype=np.float32)
    _verify(images, str(path))
    return images


def _verify(images: np.ndarray, name: str) -> None:
    mean = float(np.abs(images.mean(axis=(1, 2), dtype=np.float64)).max())
    variance = float(images.var(axis=(1, 2), dtype=np.float64).mean())
    low, high = float(images.min()), float(images.max())
    good = (
        mean < 1e-3
        and abs(variance / _VARIANCE - 1) < 0.01
        and abs(low - _LOWEST) < 0.01
        and abs(high - _HIGHEST) < 0.01
    )
    if not good:
        raise DataError(
            f"{name} is not the whitened set: largest mean {mean:.3g}, mean variance {variance:.4g}, range {low:.3g} "
            f"to {high:.3g}, expected 0, {_VARIANCE}, {_LOWEST} to {_HIGHEST}; download IMAGES.mat, not IMAGES_RAW.mat."
        )


def olshausen_patches(
    path: str | PathLike[str],
    n_train: int = 80_000,
    n_valid: int = 16_000,
    size: int = 16,
    seed: int = 0,
    border: int = 4,
) -> Patches:
    """Patches standardised per pixel with the training statistics, so that E‖x‖² = size².

    All positions are distinct, so no validation patch is a training patch; they may overlap, as in the paper.
    """
    images = load_olshausen(path)
    positions = draw_positions(images, n_train + n_valid, size, seed, border)
    patches = patches_at(images, positions, size, border)
    standardiser = Standardiser.fit(ArrayRows(patches[:n_train]), per_feature=True)
    standard = standardiser(torch.from_numpy(patches)).numpy()
    return Patches(standard[:n_train], standard[n_train:])
