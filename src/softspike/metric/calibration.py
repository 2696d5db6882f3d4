"""Whether probabilities and intervals mean what they say."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Reliability", "brier_score", "calibration_error", "interval_coverage", "reliability"]


class Reliability(NamedTuple):
    """The reliability diagram: equal-width bins of the forecast, each (n_bins,)."""

    forecast: Tensor  # mean probability said in the bin; NaN where the bin is empty
    observed: Tensor  # share that happened; NaN where the bin is empty
    total: Tensor  # forecasts in the bin


def reliability(probability: Tensor, outcome: Tensor, n_bins: int = 15) -> Reliability:
    """Forecasts and what happened, pooled over all entries and put into the bins [0, 1/n), …, [1 − 1/n, 1]."""
    p, happened = probability.double().flatten(), outcome.double().flatten()
    index = (p * n_bins).long().clamp(0, n_bins - 1)
    total = torch.bincount(index, minlength=n_bins)
    forecast, observed = (torch.bincount(index, weights=v, minlength=n_bins) / total for v in (p, happened))
    return Reliability(forecast, observed, total)


def calibration_error(probability: Tensor, outcome: Tensor, n_bins: int = 15) -> float:
    """Expected calibration error Σ_b (n_b/n)·|forecast_b − observed_b| over bins of equal width.

    An empty bin has the weight 0. Where nearly all forecasts are near 0, as those of sparse codes are, the sum is
    small for that reason alone: give the entries that matter (say, those with p > 0.01) as well.
    """
    bins = reliability(probability, outcome, n_bins)
    gap = torch.where(bins.total > 0, (bins.forecast - bins.observed).abs(), 0.0)
    return float((bins.total * gap).sum() / bins.total.sum())


def brier_score(probability: Tensor, outcome: Tensor) -> float:
    """mean (p − outcome)² over all entries; lower is better, and a forecast of the base rate f scores f(1 − f)."""
    return float((probability.double() - outcome.double()).square().mean())


def interval_coverage(centre: Tensor, std: Tensor, truth: Tensor, level: float = 0.9) -> float:
    """The share of entries with |truth − centre| ≤ Φ⁻¹((1 + level)/2)·std: `level` where the std is right."""
    reach = math.sqrt(2) * torch.special.erfinv(torch.tensor(level, dtype=torch.float64))
    return float(((truth - centre).double().abs() <= reach * std.double()).double().mean())
