"""The photographs that ship inside scikit-learn and scikit-image: data that is always there."""

import numpy as np

from softspike.data.patches import Patches, extract_patches, whiten

__all__ = ["photograph_patches", "photographs"]

_WRAPPED = 4  # pixels at the edges that carry what whitening wraps around
_SCIKIT_IMAGE = ("camera", "grass", "gravel", "brick", "coffee", "chelsea", "astronaut", "rocket")


def photographs() -> list[np.ndarray]:
    """Ten grey photographs with values in [0, 1]: china and flower, then camera … rocket. Nothing is downloaded."""
    import skimage.data
    from skimage.color import rgb2gray
    from sklearn.datasets import load_sample_images

    pictures = [*load_sample_images().images, *(getattr(skimage.data, name)() for name in _SCIKIT_IMAGE)]
    return [rgb2gray(p) if p.ndim == 3 else p.astype(np.float64) / 255 for p in pictures]


def photograph_patches(n_train: int, n_valid: int, size: int = 16, seed: int = 0) -> Patches:
    """Whitened patches; every fifth horizontal band of a photograph is for validation, sharing no pixel with training.

    Bands, not one end of the picture: sky and ground differ, and unseen patches should be of the same kind.
    """
    whitened = [whiten(photograph) for photograph in photographs()]
    height = 2 * size  # of a band
    training: list[np.ndarray] = []
    validation: list[np.ndarray] = []
    for image in whitened:
        inner = image[_WRAPPED:-_WRAPPED, _WRAPPED:-_WRAPPED]
        for number, top in enumerate(range(0, len(inner), height)):
            (validation if number % 5 == 4 else training).append(inner[top : top + height])
    return Patches(
        extract_patches(training, n_train, size, [seed, 0], border=0),
        extract_patches(validation, n_valid, size, [seed, 1], border=0),
    )
