"""The Fréchet distance between two sets of features, each taken as a Gaussian."""

import torch
from torch import Tensor

__all__ = ["frechet_distance", "gaussian_frechet_distance"]


def frechet_distance(one: Tensor, other: Tensor) -> float:
    """Between features (N, f) and (M, f), by their means and their covariances over samples, (f, f).

    0 for a set and its own shuffle: pairing plays no part. It is called FID only where the features are those of the
    Inception network; otherwise it is named after whatever gave the features.
    """
    return gaussian_frechet_distance(*_moments(one), *_moments(other))


def gaussian_frechet_distance(mean: Tensor, covariance: Tensor, other_mean: Tensor, other_covariance: Tensor) -> float:
    """‖m − m′‖² + tr(C + C′ − 2(C^½·C′·C^½)^½): the squared Wasserstein-2 distance of N(m, C) and N(m′, C′)."""
    root = _root(covariance.double())
    cross = torch.linalg.eigvalsh(root @ other_covariance.double() @ root).clamp_min(0).sqrt().sum()
    shift = (mean.double() - other_mean.double()).square().sum()
    return float(shift + covariance.double().trace() + other_covariance.double().trace() - 2 * cross)


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    if features.ndim != 2 or len(features) < 2:
        raise ValueError(f"features have shape {tuple(features.shape)}, expected (n_samples ≥ 2, n_features)")
    x = features.double()
    deviation = x - x.mean(0)
    return x.mean(0), deviation.T @ deviation / (len(x) - 1)


def _root(symmetric: Tensor) -> Tensor:
    """The positive square root of a positive semidefinite matrix."""
    values, vectors = torch.linalg.eigh(symmetric)
    return (vectors * values.clamp_min(0).sqrt()) @ vectors.T
