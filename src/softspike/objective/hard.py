"""All that a hard-thresholded Gaussian needs for the expected bound, in one pass over its parameters."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["HardMoments", "hard_gaussian_moments"]

_ROOT_HALF, _DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)


class HardMoments(NamedTuple):
    probability: Tensor  # γ = P(z ≠ 0)
    mean: Tensor  # E z
    variance: Tensor  # Var z
    kl: Tensor  # from the spike-and-slab prior
    slope: Tensor  # ∂γ/∂λ


def hard_gaussian_moments(
    location: Tensor, scale: Tensor, level: Tensor, prior_logit: Tensor, prior_scale: Tensor, positive: bool = False
) -> HardMoments:
    """z = s·1[|s| > λ] (or s·1[s > λ] if positive), s ~ N(μ, σ²), against (1−π)δ₀ + π·N(0, σ₀²).

    With a = (λ−μ)/σ, b = (λ+μ)/σ:   γ = Φ(−a) + Φ(−b),   E z = μγ + σ(φ(a) − φ(b)),
    E z² = (μ²+σ²)γ + σ((λ+μ)φ(a) + (λ−μ)φ(b)),   ∂γ/∂λ = −(φ(a) + φ(b))/σ,
    KL = (1−γ)log((1−γ)/(1−π)) + γ(log(σ₀/σ) − log π − ½) − ½(aφ(a) + bφ(b)) + E z²/2σ₀²;
    a positive code drops the terms in b and compares with the half-normal slab, log 2 denser.
    """
    a = (level - location) / scale
    gamma = 0.5 * torch.erfc(a * _ROOT_HALF)
    density = _DENSITY * torch.exp(-0.5 * a.square())
    edges, first, second, spread = density, density, (level + location) * density, a * density
    if not positive:
        b = (level + location) / scale
        other = _DENSITY * torch.exp(-0.5 * b.square())
        gamma = gamma + 0.5 * torch.erfc(b * _ROOT_HALF)
        edges, first = density + other, density - other
        second, spread = second + (level - location) * other, spread + b * other
    mean = location * gamma + scale * first
    square = (location.square() + scale.square()) * gamma + scale * second
    silent = (1 - gamma).clamp_min(1e-7)
    log_on = torch.nn.functional.logsigmoid(prior_logit) + (math.log(2) if positive else 0.0)
    log_off = torch.nn.functional.logsigmoid(-prior_logit)
    kl = silent * (silent.log() - log_off) + gamma * ((prior_scale / scale).log() - log_on - 0.5)
    kl = kl - 0.5 * spread + square / (2 * prior_scale.square())
    return HardMoments(gamma, mean, (square - mean.square()).clamp_min(0), kl, -edges / scale)
