"""The photographs that ship inside scikit-learn and scikit-image: data that is always there."""

import numpy as np

from softspike.data.patches import Patches, extract_patches, whiten

__all__ = ["photograph_patches", "photographs"]

_WRAPPED = 4  # pixels at the edges that carry what whitening wraps around
_BLOCK = 24
_SCIKIT_IMAGE = ("camera", "grass", "gravel", "brick", "coffee", "chelsea", "astronaut", "rocket")


def photographs() -> list[np.ndarray]:
    """Ten grey photographs with values in [0, 1]: china and flower, then camera … rocket. Nothing is downloaded."""
    import skimage.data
    from skimage.color import rgb2gray
    from sklearn.datasets import load_sample_images

    pictures = [*load_sample_images().images, *(getattr(skimage.data, name)() for name in _SCIKIT_IMAGE)]
    return [rgb2gray(p) if p.ndim == 3 else p.astype(np.float64) / 255 for p in pictures]


def photograph_patches(n_train: int, n_valid: int, size: int = 16, seed: int = 0) -> Patches:
    """Whitened patches; a fifth of each photograph is for validation, sharing no pixel with training.

    The fifth is spread evenly over the picture, as blocks of 24×24 pixels (or one and a half patches) of which those
    with (row + 2·column) mod 5 = 4 are set aside: sky and ground, grass and gravel differ, and unseen patches should be
    of the same kind as those that were learned from.
    """
    whitened = [whiten(photograph)[_WRAPPED:-_WRAPPED, _WRAPPED:-_WRAPPED] for photograph in photographs()]
    side = max(_BLOCK, 3 * size // 2)
    training: list[np.ndarray] = []
    validation: list[np.ndarray] = []
    for image in whitened:
        for row, top in enumerate(range(0, image.shape[0], side)):
            for column, left in enumerate(range(0, image.shape[1], side)):
                part = validation if (row + 2 * column) % 5 == 4 else training
                part.append(image[top : top + side, left : left + side])
    return Patches(
        extract_patches(training, n_train, size, [seed, 0], border=0),
        extract_patches(validation, n_valid, size, [seed, 1], border=0),
    )
