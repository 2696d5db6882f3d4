"""Calibration without a known truth: the model makes data whose codes are known, and is asked about it."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.metric.calibration import Reliability, calibration_error, interval_coverage, reliability
from softspike.model import VariationalCoder

__all__ = ["SimulatedCalibration", "simulated_calibration"]


class SimulatedCalibration(NamedTuple):
    """On data drawn from the model itself. Real data may differ from the model, and then so may the calibration."""

    n_samples: int
    reliability: Reliability  # of γ against the support that made the data
    error: float  # Σ_b (n_b/n)·|forecast_b − observed_b| over all entries
    error_in_doubt: float  # the same over entries with 0.01 < γ < 0.99; NaN where there are none
    coverage: float  # of 90 % intervals about the active entries of the code; NaN where there are none


@torch.no_grad()
def simulated_calibration(coder: Coder, x: Tensor, seed: int = 1) -> SimulatedCalibration | None:
    """On inputs simulated to be like x (B, D); None for coders that say nothing about the law of z."""
    made = coder.simulated(x, seed) if isinstance(coder, VariationalCoder) else None
    if made is None:
        return None
    likely, other = made
    probability, on = coder.activation_probability(likely.x), likely.truth != 0
    code, std = coder.code_and_std(other.x)
    doubtful, active = (probability > 0.01) & (probability < 0.99), code != 0
    return SimulatedCalibration(
        len(likely.x),
        reliability(probability, on, n_bins=10),
        calibration_error(probability, on),
        _or_nan(doubtful, lambda: calibration_error(probability[doubtful], on[doubtful])),
        _or_nan(active, lambda: interval_coverage(code[active], std[active], other.truth[active])),
    )


def _or_nan(entries: Tensor, measure: Callable[[], float]) -> float:
    return measure() if bool(entries.any()) else float("nan")
