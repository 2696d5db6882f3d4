"""How well and how sparsely codes rebuild the data."""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = [
    "active_count",
    "dead_components",
    "explained_share",
    "explained_variance",
    "pca_explained_variance",
    "pca_residuals",
    "sparse_coding_loss",
]


def explained_share(residual: float, variance: float) -> float:
    """1 − residual/variance; where nothing varies, 1 for a perfect reconstruction and 0 for any other."""
    if variance > 0:
        return 1 - residual / variance
    return float(residual == 0)


def explained_variance(x: Tensor, reconstruction: Tensor) -> float:
    """1 − Σ‖x − x̂‖² / Σ‖x − x̄‖², about the mean of x, summed over features and samples."""
    residual = (x - reconstruction).double().square().sum()
    return explained_share(float(residual), float((x.double() - x.double().mean(0)).square().sum()))


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
    centred = x.double() - x.double().mean(0)
    gram = centred @ centred.T if len(x) < x.shape[1] else centred.T @ centred  # the smaller one; equal spectra
    spectrum = torch.linalg.eigvalsh(gram).flip(0).clamp_min(0)
    return explained_share(float(spectrum[n_directions:].sum()), float(spectrum.sum()))


def pca_residuals(x: Tensor, counts: Sequence[int], fit: Tensor) -> Tensor:
    """Σ‖x − x̂‖² over x (B, D) where x̂ keeps the first k principal components of `fit` (n, D), for each k."""
    mean = fit.double().mean(0)
    centred = x.double() - mean
    total, kept = centred.square().sum(), (centred @ _directions(fit.double() - mean)).square().sum(0).cumsum(0)
    return torch.stack([total - kept[min(k, len(kept)) - 1] if k > 0 else total for k in counts]).clamp_min(0)


def _directions(centred: Tensor) -> Tensor:
    """The principal directions in columns (D, r), leading first, from the smaller Gram matrix."""
    wide = len(centred) < centred.shape[1]
    spectrum, vectors = torch.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    vectors = vectors[:, spectrum > 1e-12 * spectrum[-1].clamp_min(1e-300)].flip(1)
    directions = centred.T @ vectors if wide else vectors
    return directions / directions.norm(dim=0).clamp_min(1e-300)
