"""Data whose dictionary, codes and supports are known: the ground truth for recovery."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.data.error import DataError

__all__ = ["SparseSample", "power_law_rates", "power_law_synthetic", "synthetic"]

# Even the most common source is off half the time: one that is always on cannot be told from the mean.
_LARGEST_RATE = 0.5


class SparseSample(NamedTuple):
    x: Tensor  # (n_samples, n_features)
    codes: Tensor  # (n_samples, n_sources), zero off the support
    dictionary: Tensor  # (n_features, n_sources), unit-norm columns


def synthetic(
    n_samples: int,
    n_features: int,
    n_sources: int,
    n_active: int,
    seed: int,
    noise: float = 0.0,
    positive: bool = True,
    values: Callable[[Tensor], Tensor] = lambda normal: normal,
) -> SparseSample:
    """x = Az + noise·ε: exactly n_active sources on, chosen uniformly, with z = |N(0, 1)| (or N(0, 1)) on them.

    `values` makes something else of the normal numbers: `lambda n: n.sign() * (0.5 + torch.erf(n.abs() / 2**0.5))` is
    uniform in ±[½, 3/2].
    """
    if not 0 < n_active <= n_sources:
        raise DataError(
            f"n_active is {n_active}, expected 1 to n_sources = {n_sources}; choose a number in this range."
        )
    random = Generator().manual_seed(seed)
    support = torch.rand(n_samples, n_sources, generator=random).topk(n_active, dim=1).indices
    drawn = values(torch.randn(n_samples, n_active, generator=random))
    codes = torch.zeros(n_samples, n_sources).scatter_(1, support, drawn.abs() if positive else drawn)
    return _mixed(codes, n_features, noise, random)


def power_law_synthetic(
    n_samples: int,
    mean_active: float,
    seed: int,
    n_features: int = 128,
    n_sources: int = 1024,
    exponent: float = 1.0,
    correlation: float = 0.5,
    noise: float = 0.0,
    positive: bool = True,
    values: Callable[[Tensor], Tensor] = lambda normal: normal,
) -> SparseSample:
    """x = Az + noise·ε with rates pᵢ of `power_law_rates`, correlated in the pairs (0, 1), (2, 3), …

    Source i is on where uᵢ < pᵢ, u uniform. With probability ρ = correlation a pair shares one u, otherwise each has
    its own: P(both on) = ρ·min(pᵢ, pⱼ) + (1 − ρ)·pᵢpⱼ, while each still has its rate. On the support z = |N(0, 1)|, or
    what `positive` and `values` make of it, as in `synthetic`.
    """
    if not 0 <= correlation <= 1:
        raise DataError(f"correlation is {correlation}, expected 0 to 1; choose a number in this range.")
    random = Generator().manual_seed(seed)
    rates = power_law_rates(n_sources, mean_active, exponent)
    u = torch.rand(n_samples, n_sources, generator=random)
    n_pairs = n_sources // 2
    shared = torch.rand(n_samples, n_pairs, generator=random) < correlation
    first, second = u[:, 0 : 2 * n_pairs : 2], u[:, 1 : 2 * n_pairs : 2]
    second.copy_(torch.where(shared, first, second))
    drawn = values(torch.randn(n_samples, n_sources, generator=random))
    codes = (drawn.abs() if positive else drawn) * (u < rates)
    return _mixed(codes, n_features, noise, random)


def power_law_rates(n_sources: int, mean_active: float, exponent: float = 1.0) -> Tensor:
    """pᵢ = min(c·(i+1)^(−exponent), ½), i = 0 … n−1, with c such that Σpᵢ = mean_active."""
    if not 0 < mean_active < _LARGEST_RATE * n_sources:
        limit = _LARGEST_RATE * n_sources
        raise DataError(
            f"mean_active is {mean_active}, expected more than 0 and less than {limit:g}; choose one between."
        )
    weights = torch.arange(1, n_sources + 1, dtype=torch.float64).pow(-exponent)
    low, high = 0.0, float(_LARGEST_RATE / weights.min())
    for _ in range(200):
        middle = (low + high) / 2
        enough = float((middle * weights).clamp_max(_LARGEST_RATE).sum()) >= mean_active
        low, high = (low, middle) if enough else (middle, high)
    return (high * weights).clamp_max(_LARGEST_RATE).to(torch.float32)


def _mixed(codes: Tensor, n_features: int, noise: float, random: Generator) -> SparseSample:
    atoms = torch.randn(n_features, codes.shape[1], generator=random)
    dictionary = atoms / atoms.norm(dim=0)
    x = codes @ dictionary.T
    return SparseSample(x + noise * torch.randn(x.shape, generator=random), codes, dictionary)
