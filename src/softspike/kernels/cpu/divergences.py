"""Divergences of one row from the prior and their slopes, in one pass: `torch.distributions.kl_divergence` is plain."""

import numpy as np

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.functions import Array, exponential, logarithm

__all__ = ["laplace_kl", "normal_kl"]

_F = np.float32
_ZERO, _ONE, _HALF = _F(0), _F(1), _F(0.5)


@compiled
def laplace_kl(location: Array, scale: Array, prior: np.float32, by_location: Array, by_scale: Array) -> np.float32:
    """Σ |μ|/b₀ + (b/b₀)·exp(−|μ|/b) + log(b₀/b) − 1, and its slopes in μ and b."""
    total = _ZERO
    for i in range(len(location)):
        distance, ratio = abs(location[i]) / scale[i], scale[i] / prior
        tail = exponential(-distance)
        total += ratio * (distance + tail) - logarithm(ratio) - _ONE
        slope = (_ONE - tail) / prior
        by_location[i] = slope if location[i] > 0 else -slope
        by_scale[i] = tail * (_ONE + distance) / prior - _ONE / scale[i]
    return total


@compiled
def normal_kl(location: Array, scale: Array, prior: np.float32, by_location: Array, by_scale: Array) -> np.float32:
    """Σ ½[(μ² + σ²)/σ₀² − 1] − log(σ/σ₀), and its slopes in μ and σ."""
    total = _ZERO
    for i in range(len(location)):
        apart, ratio = location[i] / prior, scale[i] / prior
        total += _HALF * (apart * apart + ratio * ratio - _ONE) - logarithm(ratio)
        by_location[i] = apart / prior
        by_scale[i] = ratio / prior - _ONE / scale[i]
    return total
