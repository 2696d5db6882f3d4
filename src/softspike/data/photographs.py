"""The photographs that ship inside scikit-learn and scikit-image: data that is always there."""

import numpy as np

from softspike.data.patches import Patches, extract_patches, whiten

__all__ = ["photograph_patches", "photographs"]

_SCIKIT_IMAGE = ("camera", "grass", "gravel", "brick", "coffee", "chelsea", "astronaut", "rocket")


def photographs() -> list[np.ndarray]:
    """Ten grey photographs with values in [0, 1]: china and flower, then camera … rocket. Nothing is downloaded."""
    import skimage.data
    from skimage.color import rgb2gray
    from sklearn.datasets import load_sample_images

    pictures = [*load_sample_images().images, *(getattr(skimage.data, name)() for name in _SCIKIT_IMAGE)]
    return [rgb2gray(p) if p.ndim == 3 else p.astype(np.float64) / 255 for p in pictures]


def photograph_patches(n_train: int, n_valid: int, size: int = 16, seed: int = 0) -> Patches:
    """Whitened patches; the bottom fifth of every photograph is for validation and shares no pixel with training."""
    whitened = [whiten(photograph) for photograph in photographs()]
    cuts = [len(image) * 4 // 5 for image in whitened]
    upper = [image[:cut] for image, cut in zip(whitened, cuts, strict=True)]
    lower = [image[cut:] for image, cut in zip(whitened, cuts, strict=True)]
    return Patches(extract_patches(upper, n_train, size, [seed, 0]), extract_patches(lower, n_valid, size, [seed, 1]))
