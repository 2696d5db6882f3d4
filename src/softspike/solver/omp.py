"""Batched orthogonal matching pursuit, to a fixed count, to a residual tolerance, or to a mean count."""

from collections.abc import Sequence

import torch
from torch import Tensor

from softspike.solver.given import check_given
from softspike.solver.omp_plain import Pursuit
from softspike.solver.pursuit import pursue
from softspike.solver.scale import unit_and_norm

__all__ = ["omp", "omp_at_mean_count", "omp_by_gain", "omp_residuals", "rows_held"]


@torch.no_grad()
def omp(x: Tensor, atoms: Tensor, n_active: int | None = None, tolerance: Tensor | float | None = None) -> Tensor:
    """Codes (B, d) of x (B, D) on atoms (D, d).

    Each round adds the atom with the largest |aᵢᵀr|/‖aᵢ‖ and refits all chosen atoms by least squares.
    A sample stops at `n_active` atoms or when ‖r‖² ≤ tolerance, whichever comes first, or when no atom can lower ‖r‖².
    """
    check_given(x, atoms)
    if n_active is None and tolerance is None:
        raise ValueError("omp needs n_active (a count), tolerance (on ‖r‖²), or both")
    if n_active is not None and n_active < 0:
        raise ValueError(f"n_active is {n_active}, expected a count ≥ 0")
    limit = min(atoms.shape) if n_active is None else min(n_active, *atoms.shape)
    unit, norms = unit_and_norm(atoms, dim=0)
    return _codes(pursue(x, unit, _everyone(x, limit), 0.0 if tolerance is None else tolerance), norms)


def _everyone(x: Tensor, limit: int) -> Tensor:
    return torch.full((len(x),), limit, device=x.device)


def _codes(pursuit: Pursuit, norms: Tensor) -> Tensor:
    """The codes (B, d) in units of the atoms as they are, whose norms are (1, d)."""
    n, d = len(pursuit.chosen), norms.shape[1]
    taken = (pursuit.chosen < d).nonzero(as_tuple=True)
    chosen, codes = pursuit.chosen[taken], norms.new_zeros(n, d)
    codes[taken[0], chosen] = pursuit.coefficients[taken] / norms[0, chosen]
    return codes


@torch.no_grad()
def omp_at_mean_count(x: Tensor, atoms: Tensor, mean_active: float) -> Tensor:
    """OMP stopped by one global tolerance on ‖r‖², the smallest at which the *mean* count is at most `mean_active`.

    The fair rival of a coder whose count adapts to the input. A sample takes an atom exactly when its ‖r‖² before that
    exceeds the tolerance, so the tolerance is an order statistic of those energies. A short pursuit bounds it below and
    a second one down to that bound holds the answer; a third stops where it says. No sample takes more than
    8·mean_active + 8 atoms.
    """
    check_given(x, atoms)
    unit, norms = unit_and_norm(atoms, dim=0)
    energies = _pursue_to_mean_count(x, unit, mean_active).energies
    taken = (energies > _energy_of_rank(energies, int(mean_active * len(x)))).sum(-1)
    return _codes(pursue(x, unit, taken, 0.0), norms)


@torch.no_grad()
def omp_by_gain(x: Tensor, atoms: Tensor, mean_active: float) -> Tensor:
    """OMP where a sample stops before the first atom that lowers its ‖r‖² by no more than a level, one for all, set so
    that the mean count is `mean_active`: atoms go where they explain most. At most 3·mean_active + 8 for a sample."""
    check_given(x, atoms)
    unit, norms = unit_and_norm(atoms, dim=0)
    path = pursue(x, unit, _everyone(x, min(int(3 * mean_active) + 8, *atoms.shape)), 0.0)
    gains = path.projections.double().square().cummin(-1).values
    taken = (gains > _energy_of_rank(gains, int(mean_active * len(x)))).sum(-1)
    return _codes(pursue(x, unit, taken, 0.0), norms)


@torch.no_grad()
def omp_residuals(x: Tensor, atoms: Tensor, mean_counts: Sequence[float]) -> Tensor:
    """‖r‖² that `omp_at_mean_count` leaves of each sample at each mean count, (n_counts, B), from one pursuit.

    What a sample takes at a small count it also takes, in the same order, at a larger one; and in the orthonormal basis
    of a pursuit ‖r‖² = ‖x‖² − Σ projection² over what was taken. The limit per sample is that of the largest count.
    """
    check_given(x, atoms)
    pursuit = _pursue_to_mean_count(x, unit_and_norm(atoms, dim=0)[0], max(mean_counts))
    energy, gains = x.double().square().sum(-1), pursuit.projections.double().square()
    left = []
    for count in mean_counts:
        taken = pursuit.energies > _energy_of_rank(pursuit.energies, int(count * len(x)))
        left.append((energy - (gains * taken).sum(-1)).clamp_min(0))
    return torch.stack(left)


def rows_held(n_numbers: int, shape: Sequence[int], mean_active: float) -> int:
    """How many rows n numbers hold the pursuits of, to that mean count on atoms (D, d): K(K + D) numbers each."""
    longest = min(int(8 * mean_active) + 8, *shape)
    return n_numbers // (longest * (longest + shape[0]))


def _pursue_to_mean_count(x: Tensor, unit: Tensor, mean_active: float) -> Pursuit:
    """A pursuit that holds at least the atoms of every smaller mean count."""
    if not mean_active >= 0:
        raise ValueError(f"mean_active is {mean_active}, expected a number ≥ 0")
    short, long = (_everyone(x, min(int(factor * mean_active) + factor, *unit.shape)) for factor in (2, 8))
    bound = _energy_of_rank(pursue(x, unit, short, 0.0).energies, int(mean_active * len(x)))
    return pursue(x, unit, long, bound)


def _energy_of_rank(energies: Tensor, rank: int) -> Tensor:
    """The energy that `rank` others exceed, 0 where there are not as many."""
    ranked = energies.flatten().sort(descending=True).values
    return ranked[rank] if rank < len(ranked) else ranked.new_zeros(())
