"""Which component tells which attribute, and what moving one component does to an image."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.data import Labels
from softspike.generator import Generator
from softspike.metric.point_biserial import point_biserial

__all__ = ["BestComponents", "attribute_correlations", "best_components", "chance_correlation", "traversal"]


class BestComponents(NamedTuple):
    """For each of m attributes, the component that goes with it most closely."""

    component: Tensor  # (m,)
    correlation: Tensor  # (m,) signed


def attribute_correlations(labels: Labels, codes: Tensor) -> Tensor:
    """The point-biserial correlation of every attribute with every component: (m, d), from codes (N, d)."""
    truth = torch.from_numpy(labels.values).to(codes.device)
    return torch.stack([point_biserial(truth[:, number], codes) for number in range(truth.shape[1])])


def best_components(correlations: Tensor) -> BestComponents:
    """By the largest absolute correlation."""
    component = correlations.abs().argmax(1)
    return BestComponents(component, correlations.gather(1, component[:, None])[:, 0])


def chance_correlation(n_rows: int, n_components: int, risk: float = 0.01) -> float:
    """What the largest |r| of d components that know nothing of an attribute exceeds with this probability.

    √N·r of a component that knows nothing is standard normal: r = Φ⁻¹(1 − p/2)/√N with 1 − (1 − p)^d = risk.
    """
    p = -math.expm1(math.log1p(-risk) / n_components)
    return NormalDist().inv_cdf(1 - p / 2) / math.sqrt(n_rows)


@torch.no_grad()
def traversal(generator: Generator, code: Tensor, component: int, values: Tensor) -> Tensor:
    """x̂ (K, D) of one code (d,) with one component set to each of K values in turn."""
    codes = code.expand(len(values), -1).clone()
    codes[:, component] = values
    return generator.preview(codes[None])[0]
