"""What solvers reach on someone else's dictionary at someone else's mean count."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.metric.reconstruction import active_count, explained_variance
from softspike.solver import lasso, omp_at_mean_count

__all__ = ["Matched", "lasso_at_mean_count", "matched_solvers", "pursuable"]

# Entries of the bases and triangles that batched pursuits hold: 2²⁶ floats are a quarter of a gigabyte.
_PURSUIT_NUMBERS = 2**26


class Matched(NamedTuple):
    """Explained variance on the first `n_samples` rows."""

    n_samples: int
    omp: float  # matching pursuit stopped by one global tolerance
    fista: float  # the lasso at the penalty that gives the count
    fista_active: float  # the count it then has


@torch.no_grad()
def matched_solvers(atoms: Tensor, x: Tensor, mean_active: float) -> Matched:
    """OMP and FISTA on atoms (D, d) at a mean count, on as many rows of x as a quarter of a gigabyte holds."""
    x = pursuable(x, atoms, mean_active)
    pursued, shrunk = omp_at_mean_count(x, atoms, mean_active), lasso_at_mean_count(x, atoms, mean_active)
    by_omp, by_fista = (explained_variance(x, codes @ atoms.T) for codes in (pursued, shrunk))
    return Matched(len(x), by_omp, by_fista, active_count(shrunk))


def pursuable(x: Tensor, atoms: Tensor, mean_active: float) -> Tensor:
    """The first rows of x, as many as matching pursuit to that mean count can hold."""
    longest = min(int(8 * mean_active) + 8, *atoms.shape)  # the atoms that a pursuit may hold for one sample
    return x[: max(_PURSUIT_NUMBERS // (longest * (longest + len(atoms))), 1)]


def lasso_at_mean_count(x: Tensor, atoms: Tensor, mean_active: float, n_halvings: int = 14) -> Tensor:
    """FISTA's codes at the penalty λ, bisected on its logarithm, at which they have that mean count.

    Each solve starts from the codes of the one before.
    """
    high = float((x @ atoms).abs().max())
    low, codes, found = 1e-4 * high, None, torch.zeros_like(x @ atoms)
    for _ in range(n_halvings):
        middle = (low * high) ** 0.5
        codes = lasso(x, atoms, middle, start=codes, max_iterations=500).codes
        if active_count(codes) > mean_active:
            low = middle
        else:
            high, found = middle, codes
    return found
