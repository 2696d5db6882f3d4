"""How well and how sparsely codes rebuild the data."""

import torch
from torch import Tensor

__all__ = ["active_count", "dead_components", "explained_variance", "pca_explained_variance", "sparse_coding_loss"]


def explained_variance(x: Tensor, reconstruction: Tensor) -> float:
    """1 − Σ‖x − x̂‖² / Σ‖x − x̄‖², about the mean of x, summed over features and samples."""
    residual = (x - reconstruction).double().square().sum()
    total = (x - x.mean(0)).double().square().sum()
    return float(1 - residual / total)


def active_count(codes: Tensor) -> float:
    """The mean number of non-zero components per sample."""
    return float((codes != 0).sum(-1).double().mean())


def dead_components(codes: Tensor) -> int:
    """The number of components that are zero on every one of these samples."""
    return int((codes != 0).any(0).logical_not().sum())


def sparse_coding_loss(x: Tensor, reconstruction: Tensor, codes: Tensor, penalty: float = 20.0) -> float:
    """½‖x − x̂‖² + λ‖z‖₁ averaged over samples: the paper's validation loss. z = 0 scores ½·E‖x‖²."""
    misfit = 0.5 * (x - reconstruction).square().sum(-1)
    return float((misfit + penalty * codes.abs().sum(-1)).double().mean())


def pca_explained_variance(x: Tensor, n_directions: int) -> float:
    """The share of variance in the leading principal components: the dense linear code of the same size."""
    spectrum = torch.linalg.eigvalsh(torch.cov(x.double().T).atleast_2d()).flip(0).clamp_min(0)
    return float(spectrum[:n_directions].sum() / spectrum.sum())
