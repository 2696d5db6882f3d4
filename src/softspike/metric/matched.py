"""What solvers reach on someone else's dictionary at someone else's mean count."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.generator import LinearGenerator
from softspike.metric.reconstruction import active_count, explained_variance
from softspike.solver import FistaCoder, omp_at_mean_count

__all__ = ["Matched", "matched_solvers"]

# Entries of the bases and triangles that batched pursuits hold: 2²⁶ floats are a quarter of a gigabyte.
_PURSUIT_NUMBERS = 2**26


class Matched(NamedTuple):
    """Explained variance on the first `n_samples` rows."""

    n_samples: int
    omp: float  # matching pursuit stopped by one global tolerance
    fista: float  # the lasso at the penalty that gives the count
    fista_active: float  # the count it then has


@torch.no_grad()
def matched_solvers(generator: LinearGenerator, x: Tensor, mean_active: float) -> Matched:
    """OMP and FISTA on the generator's atoms at a mean count, on as many rows of x as a quarter of a gigabyte holds."""
    atoms = generator.atoms.detach()
    longest = min(int(8 * mean_active) + 8, *atoms.shape)
    x = x[: max(_PURSUIT_NUMBERS // (longest * (longest + len(atoms))), 1)]
    pursued = omp_at_mean_count(x, atoms, mean_active)
    lasso = FistaCoder(generator)
    lasso.to(x.device).calibrate(x, mean_active)
    codes = lasso.code(x)
    return Matched(
        len(x), explained_variance(x, pursued @ atoms.T), explained_variance(x, codes @ atoms.T), active_count(codes)
    )
