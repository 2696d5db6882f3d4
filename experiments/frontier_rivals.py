"""Solvers on a dictionary someone else learned, at the mean count of someone else's codes."""

from typing import Any

from torch import Tensor

from softspike.metric import active_count, explained_variance
from softspike.solver import lasso, omp, omp_at_mean_count, omp_by_gain, refit_on_support

__all__ = ["rivals"]


def rivals(x: Tensor, atoms: Tensor, codes: Tensor) -> dict[str, Any]:
    """Solvers on the same dictionary, the same patches, at the same mean count as these codes."""
    active = active_count(codes)
    lasso = _lasso(x, atoms, active)
    found = {
        "own": codes,
        "omp_tolerance": omp_at_mean_count(x, atoms, active),
        "omp_gain": omp_by_gain(x, atoms, active),
        "omp_fixed": omp(x, atoms, n_active=max(round(active), 1)),
        "fista": lasso,
        "fista_refit": refit_on_support(x, atoms, lasso, n_steps=30),
    }
    scores = {name: explained_variance(x, z @ atoms.T) for name, z in found.items()}
    return {"patches": len(x), "active": active, **scores, "fista_active": active_count(lasso)}


def _lasso(x: Tensor, atoms: Tensor, active: float) -> Tensor:
    """FISTA's codes at the penalty, found by bisection, at which they have that mean count."""
    high = float((x @ atoms).abs().max())
    low = 1e-4 * high
    for _ in range(12):
        middle = (low * high) ** 0.5
        codes = lasso(x, atoms, middle, max_iterations=300).codes
        low, high = (middle, high) if active_count(codes) > active else (low, middle)
    return lasso(x, atoms, high, max_iterations=1000).codes
