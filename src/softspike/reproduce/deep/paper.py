"""The paper's figures of its deep study: per-pixel squared error of the best of J draws on validation images.

K. Fallah and C. J. Rozell, "Variational Sparse Coding with Learned Thresholding", ICML 2022, the values behind its
figure of dimensions and sparsities.
"""

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["BY_DIMENSION", "BY_SPARSITY"]

_FASHION_DIMENSIONS, _CELEBA_DIMENSIONS, _SHARES = (20, 64, 256, 1024), (64, 512, 1024, 2048), (0.05, 0.1, 0.2, 0.5)

P = TypeVar("P", int, float)


def _at(places: Sequence[P], rows: dict[str, tuple[float, ...]]) -> dict[str, dict[P, float]]:
    return {method: dict(zip(places, errors, strict=True)) for method, errors in rows.items()}


# set → method → dimension → error, at 10 % active
BY_DIMENSION: dict[str, dict[str, dict[int, float]]] = {
    "fashion-mnist": _at(
        _FASHION_DIMENSIONS,
        {
            "gaussian": (0.0279, 0.0286, 0.0295, 0.0299),
            "spike-and-slab": (0.0305, 0.0290, 0.0307, 0.0316),
            "thresholded-gaussian": (0.0291, 0.0242, 0.0230, 0.0232),
            "thresholded-gaussian-gamma": (0.0275, 0.0250, 0.0254, 0.0257),
            "thresholded-laplacian": (0.0282, 0.0285, 0.0300, 0.0315),
            "thresholded-laplacian-gamma": (0.0282, 0.0286, 0.0300, 0.0318),
        },
    ),
    "celeba": _at(
        _CELEBA_DIMENSIONS,
        {
            "gaussian": (0.0176, 0.0179, 0.0186, 0.0205),
            "spike-and-slab": (0.0236, 0.0219, 0.0217, 0.0216),
            "thresholded-gaussian": (0.0241, 0.0162, 0.0156, 0.0152),
            "thresholded-gaussian-gamma": (0.0231, 0.0170, 0.0167, 0.0168),
            "thresholded-laplacian": (0.0213, 0.0207, 0.0210, 0.0220),
            "thresholded-laplacian-gamma": (0.0220, 0.0208, 0.0212, 0.0221),
        },
    ),
}

# set → method → share of active components → error, at d = 64 for Fashion-MNIST and 512 for CelebA
BY_SPARSITY: dict[str, dict[str, dict[float, float]]] = {
    "fashion-mnist": _at(
        _SHARES,
        {
            "spike-and-slab": (0.0291, 0.0290, 0.0293, 0.0305),
            "thresholded-gaussian": (0.0264, 0.0242, 0.0235, 0.0238),
            "thresholded-gaussian-gamma": (0.0252, 0.0250, 0.0248, 0.0243),
            "thresholded-laplacian": (0.0286, 0.0285, 0.0279, 0.0268),
            "thresholded-laplacian-gamma": (0.0292, 0.0286, 0.0280, 0.0268),
        },
    ),
    "celeba": _at(
        _SHARES,
        {
            "spike-and-slab": (0.0222, 0.0219, 0.0218, 0.0225),
            "thresholded-gaussian": (0.0176, 0.0162, 0.0158, 0.0159),
            "thresholded-gaussian-gamma": (0.0172, 0.0170, 0.0167, 0.0164),
            "thresholded-laplacian": (0.0209, 0.0207, 0.0204, 0.0195),
            "thresholded-laplacian-gamma": (0.0210, 0.0208, 0.0205, 0.0197),
        },
    ),
}
