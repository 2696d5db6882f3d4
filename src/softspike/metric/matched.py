"""What solvers reach on someone else's dictionary at someone else's mean count."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.metric.reconstruction import active_count, explained_variance
from softspike.solver import lasso, omp_at_mean_count

__all__ = ["Matched", "lasso_at_mean_count", "matched_solvers"]

_FEW = 400  # rows of a first search for the penalty


class Matched(NamedTuple):
    """Explained variance of x, and the mean counts that the solvers came to."""

    n_samples: int
    omp: float  # matching pursuit stopped by one global tolerance
    omp_active: float
    fista: float  # the lasso at the penalty that gives the count
    fista_active: float


@torch.no_grad()
def matched_solvers(atoms: Tensor, x: Tensor, mean_active: float) -> Matched:
    """OMP and FISTA of x (B, D) on atoms (D, d) at a mean count."""
    pursued, shrunk = omp_at_mean_count(x, atoms, mean_active), lasso_at_mean_count(x, atoms, mean_active)
    by_omp, by_fista = (explained_variance(x, codes @ atoms.T) for codes in (pursued, shrunk))
    return Matched(len(x), by_omp, active_count(pursued), by_fista, active_count(shrunk))


def lasso_at_mean_count(x: Tensor, atoms: Tensor, mean_active: float) -> Tensor:
    """FISTA's codes at the penalty λ, bisected on its logarithm, whose mean count is nearest to that one.

    A few rows tell about where, all of them decide. Solutions to a duality gap leave small coefficients undecided where
    atoms repeat one another, so that the count is not quite monotone in λ: the nearest of all solves is taken.
    """
    largest = float((x @ atoms).abs().max())
    about, _ = _bisected(x[:: max(len(x) // _FEW, 1)], atoms, mean_active, 1e-4 * largest, largest, 14)
    return _bisected(x, atoms, mean_active, about / 1.2, min(1.2 * about, largest), 7)[1]


def _bisected(
    x: Tensor, atoms: Tensor, mean_active: float, low: float, high: float, n_halvings: int
) -> tuple[float, Tensor]:
    """The penalty between `low` and `high` with the nearest count, and its codes. Each solve starts from the last."""
    codes, found, nearest = None, high, torch.zeros_like(x @ atoms)
    for _ in range(n_halvings):
        middle = (low * high) ** 0.5
        codes = lasso(x, atoms, middle, start=codes, tolerance=1e-4).codes
        count = active_count(codes)
        if abs(count - mean_active) < abs(active_count(nearest) - mean_active):
            found, nearest = middle, codes.clone()
        low, high = (middle, high) if count > mean_active else (low, middle)
    return found, nearest
