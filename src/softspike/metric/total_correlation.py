"""Total correlation of a Gaussian with the codes' correlations: the redundancy that linear statistics can see."""

import math

import torch
from torch import Tensor

__all__ = ["gaussian_total_correlation"]


def gaussian_total_correlation(codes: Tensor) -> float:
    """−½·log₂ det R in bits, R the correlation matrix of codes (N, d); components that never vary are left out.

    0 where components are uncorrelated, −½·log₂(1 − ρ²) for a pair. The sample's −½ log det R exceeds the true one by
    ½·Σᵢ[ψ((N−1)/2) − ψ((N−i)/2)], i = 1 … d, on average (exactly so for Gaussian data): that much is taken off.
    """
    n = len(codes)
    centre = codes.double().mean(0)
    scatter = torch.zeros(codes.shape[1], codes.shape[1], dtype=torch.float64, device=codes.device)
    for part in codes.split(8192):
        deviation = part.double() - centre
        scatter += deviation.T @ deviation
    varies = scatter.diagonal() > 0
    scatter = scatter[varies][:, varies]
    d = len(scatter)
    if n <= d + 1:
        raise ValueError(f"{n} codes of {d} varying components were given, expected more codes than components")
    scale = scatter.diagonal().sqrt()
    log_determinant = float(torch.linalg.slogdet(scatter / torch.outer(scale, scale)).logabsdet)
    halves = (n - torch.arange(1, d + 1, dtype=torch.float64)) / 2
    bias = 0.5 * float((torch.digamma(torch.tensor((n - 1) / 2, dtype=torch.float64)) - torch.digamma(halves)).sum())
    return (-0.5 * log_determinant - bias) / math.log(2)
