"""The table of laws: one row enrols a new law in every property test.

A row says how to build the law from a location, a scale and a level, and for which of these the derivative of a draw is
an unbiased estimate of the derivative of an expectation. All of it is in float64.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution, HalfNormal, Laplace, Normal

from softspike.posterior import SpikeSlab
from softspike.threshold import CentredSoft, Hard, PositiveHard, Reweighted, ShiftedSoft


class Row(NamedTuple):
    build: Callable[[Tensor, Tensor, Tensor], Distribution]
    pathwise: tuple[str, ...]


class Setting(NamedTuple):
    loc: float
    scale: float
    level: float

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        loc, scale, level = (torch.tensor(value, dtype=torch.float64) for value in self)
        return loc, scale, level


def _thresholded(law: type, base: type) -> Callable[[Tensor, Tensor, Tensor], Distribution]:
    return lambda loc, scale, level: law(base(loc, scale), level)


def _spike_slab(base: Callable[[Tensor, Tensor], Distribution]) -> Callable[[Tensor, Tensor, Tensor], Distribution]:
    """Any decreasing rate will do: logit γ = 2 − λ/scale."""
    return lambda loc, scale, level: SpikeSlab(base(loc, scale), 2 - level / scale)


def _reweighted(law: type) -> Callable[[Tensor, Tensor, Tensor], Distribution]:
    """Any probability will do: p = 1/(1 + e^(λ − μ))."""
    return lambda loc, scale, level: Reweighted(law(Normal(loc, scale), level), torch.sigmoid(loc - level))


# The shifted threshold jumps where the noise is ±λ, which moves with the scale and the level but not with the location;
# the hard ones jump at s = ±λ, which moves with everything; the centred one is continuous.
ROWS = {
    "shifted-normal": Row(_thresholded(ShiftedSoft, Normal), ("loc",)),
    "shifted-laplace": Row(_thresholded(ShiftedSoft, Laplace), ("loc",)),
    "centred-normal": Row(_thresholded(CentredSoft, Normal), ("loc", "scale", "level")),
    "centred-laplace": Row(_thresholded(CentredSoft, Laplace), ("loc", "scale", "level")),
    "hard-normal": Row(_thresholded(Hard, Normal), ()),
    "hard-laplace": Row(_thresholded(Hard, Laplace), ()),
    "positive-normal": Row(_thresholded(PositiveHard, Normal), ()),
    "positive-laplace": Row(_thresholded(PositiveHard, Laplace), ()),
    "reweighted-hard": Row(_reweighted(Hard), ()),
    "reweighted-positive": Row(_reweighted(PositiveHard), ()),
    "spike-slab-normal": Row(_spike_slab(Normal), ("loc",)),
    "spike-slab-laplace": Row(_spike_slab(Laplace), ("loc",)),
    "spike-slab-half-normal": Row(_spike_slab(lambda loc, scale: HalfNormal(scale + 0 * loc, validate_args=False)), ()),
}

SETTINGS = {
    "λ=0": Setting(0.3, 0.5, 0.0),
    "μ=0": Setting(0.0, 0.1, 0.25),
    "μ=0,λ=0": Setting(0.0, 1.0, 0.0),
    "μ<λ": Setting(0.15, 0.1, 0.25),
    "μ<0": Setting(-0.7, 0.5, 0.4),
    "μ≫λ": Setting(5.0, 0.5, 0.25),
    "small scale": Setting(0.2, 0.01, 0.02),
    "wide": Setting(0.3, 3.0, 1.0),
}

CASES = {f"{row}, {setting}": (row, setting) for row in ROWS for setting in SETTINGS}


def build(row: str, setting: str) -> Distribution:
    return ROWS[row].build(*SETTINGS[setting].tensors())


class Quadrature(NamedTuple):
    edges: Tensor  # (P+1,) of the panels
    nodes: Tensor  # (P, 4), none of them 0
    weights: Tensor  # (P, 4)


def quadrature(setting: Setting, reach: float = 40.0, per_scale: int = 20) -> Quadrature:
    """Four-point Gauss–Legendre on panels of scale/per_scale, broken wherever a law of the table may have a jump."""
    loc, scale, level = setting
    ends = (min(loc, 0) - level - reach * scale, max(loc, 0) + level + reach * scale)
    breaks = sorted({*ends, 0.0, loc, level, -level, loc + level, loc - level})
    pieces = [
        np.linspace(a, b, max(2, int(np.ceil((b - a) / scale * per_scale)) + 1))[:-1] for a, b in pairwise(breaks)
    ]
    edges = np.append(np.concatenate(pieces), breaks[-1])
    u, w = np.polynomial.legendre.leggauss(4)
    half = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + half * (u + 1)
    return Quadrature(torch.from_numpy(edges), torch.from_numpy(nodes), torch.from_numpy(half * w))


def panel_masses(law: Distribution, grid: Quadrature) -> Tensor:
    """The probability of each panel, (P,), by integrating exp(log_prob)."""
    return (law.log_prob(grid.nodes).exp() * grid.weights).sum(-1)
