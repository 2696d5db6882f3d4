"""The three thresholds: soft at zero, soft on the noise (the paper's), hard at zero."""

from torch import Tensor

__all__ = ["hard_threshold", "shifted_soft_threshold", "soft_threshold"]


def soft_threshold(s: Tensor, level: Tensor | float) -> Tensor:
    """sign(s)·max(|s| − λ, 0): the proximal operator of λ|·|."""
    return s.sign() * (s.abs() - level).clamp_min(0)


def shifted_soft_threshold(s: Tensor, level: Tensor | float, location: Tensor) -> Tensor:
    """T(s; λ, μ) = sign(s−μ)·max(|s−μ| − λ, 0) + 1[|s−μ| > λ]·μ: the noise is thresholded, the location kept whole."""
    noise = s - location
    return soft_threshold(noise, level) + (noise.abs() > level) * location


def hard_threshold(s: Tensor, level: Tensor | float) -> Tensor:
    """s·1[|s| > λ]: what is kept is not shrunk."""
    return s * (s.abs() > level)
