"""Partial moments of the base laws: all that the thresholded laws need to have closed-form γ, mean and variance.

Every thresholded law is written with four numbers of its base s, for a point t: P(s > t), E[(s − t)₊], E[(s − t)₊²]
and log P(s > t), accurate where P(s > t) rounds to 0 or 1. A new base law registers them here and nothing else.
"""

import math
from functools import singledispatch
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.distributions import Laplace, Normal

from softspike.posterior.elementwise import elementwise

__all__ = [
    "NORMAL_PEAK",
    "Base",
    "PartialMoments",
    "log_inside",
    "log_outside",
    "log_survival",
    "lower_partial_moments",
    "reflected",
    "upper_partial_moments",
]


Base: TypeAlias = Any  # a symmetric law with `loc` and `scale`: Normal, Laplace, or one registered below


NORMAL_PEAK = 1 / math.sqrt(2 * math.pi)  # φ(0)


class PartialMoments(NamedTuple):
    probability: Tensor  # P(s > t)
    mean: Tensor  # E[(s − t)₊]
    square: Tensor  # E[(s − t)₊²]


@singledispatch
def upper_partial_moments(base: Base, point: Tensor) -> PartialMoments:
    """P(s > t), E[(s − t)₊], E[(s − t)₊²] of a base law s, at t = point."""
    raise TypeError(
        f"no partial moments are known for {type(base).__name__}; thresholded laws need a Normal or Laplace base, "
        "or register yours with upper_partial_moments.register"
    )


@singledispatch
def log_survival(base: Base, point: Tensor) -> Tensor:
    """log P(s > t), accurate in both tails."""
    raise TypeError(f"no log survival is known for {type(base).__name__}; register it with log_survival.register")


def reflected(base: Base) -> Base:
    """The law of −s."""
    return type(base)(-base.loc, base.scale, validate_args=False)


def lower_partial_moments(base: Base, point: Tensor) -> PartialMoments:
    """P(s < t), E[(t − s)₊], E[(t − s)₊²]: the upper moments of the reflected law −s at −t."""
    return upper_partial_moments(reflected(base), -point)


def log_outside(base: Base, level: Tensor) -> Tensor:
    """log P(|s| > λ)."""
    return torch.logaddexp(log_survival(base, level), log_survival(reflected(base), level))


def log_inside(base: Base, level: Tensor) -> Tensor:
    """log P(|s| ≤ λ) = U(−λ) + log(1 − exp(U(λ) − U(−λ))), U the log survival of the law moved to −|μ|.

    There both points lie in the same tail, so that nothing cancels where the interval is improbable. The result is
    floored (at about −87 in float32) instead of reaching −∞ at λ = 0, which would turn gradients into NaN.
    """
    left = type(base)(-base.loc.abs(), base.scale, validate_args=False)
    near, far = log_survival(left, -level), log_survival(left, level)
    return near + torch.log(-torch.expm1((far - near).clamp_max(-torch.finfo(near.dtype).tiny)))


@upper_partial_moments.register
def _(base: Normal, point: Tensor) -> PartialMoments:
    """With m = μ − t, a = m/σ:  Φ(a),  mΦ(a) + σφ(a),  (m² + σ²)Φ(a) + mσφ(a)."""
    m, sigma = base.loc - point, base.scale
    a = m / sigma
    above = torch.special.ndtr(a)
    density = torch.exp(-0.5 * a.square()) * NORMAL_PEAK
    mean = (m * above + sigma * density).clamp_min(0)
    square = ((m.square() + sigma.square()) * above + m * sigma * density).clamp_min(0)
    return PartialMoments(above, mean, square)


@upper_partial_moments.register
def _(base: Laplace, point: Tensor) -> PartialMoments:
    """With m = μ − t, e = exp(−|m|/b):  for m ≤ 0:  e/2, be/2, b²e;  for m > 0:  1 − e/2, m + be/2, m² + 2b² − b²e."""
    m, b = base.loc - point, base.scale
    # Two exponentials rather than one of |m|, whose derivative at m = 0 autograd would take to be 0.
    rising, falling = torch.exp(m.clamp_max(0) / b), torch.exp(-m.clamp_min(0) / b)
    below = m <= 0
    probability = torch.where(below, 0.5 * rising, 1 - 0.5 * falling)
    mean = torch.where(below, 0.5 * b * rising, m + 0.5 * b * falling)
    square = torch.where(below, b.square() * rising, m.square() + b.square() * (2 - falling))
    return PartialMoments(probability, mean, square)


@log_survival.register
def _(base: Normal, point: Tensor) -> Tensor:
    """log Φ((μ − t)/σ)."""
    return elementwise(torch.special.log_ndtr, (base.loc - point) / base.scale)


@log_survival.register
def _(base: Laplace, point: Tensor) -> Tensor:
    """With m = μ − t:  log ½ + m/b for m ≤ 0;  log(1 − ½exp(−m/b)) for m > 0."""
    m, b = base.loc - point, base.scale
    return torch.where(m <= 0, m / b - math.log(2), torch.log1p(-0.5 * torch.exp(-m.abs() / b)))
