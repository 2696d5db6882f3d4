"""Batched orthogonal matching pursuit, to a fixed count or to a residual tolerance."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["omp", "omp_at_mean_count", "omp_residuals"]


@torch.no_grad()
def omp(x: Tensor, atoms: Tensor, n_active: int | None = None, tolerance: Tensor | float | None = None) -> Tensor:
    """Codes (B, d) of x (B, D) on atoms (D, d).

    Each round adds the atom with the largest |aᵢᵀr|/‖aᵢ‖ and refits all chosen atoms by least squares (a QR update).
    A sample stops at `n_active` atoms or when ‖r‖² ≤ tolerance, whichever comes first, or when no atom can lower ‖r‖².
    """
    if n_active is None and tolerance is None:
        raise ValueError("omp needs n_active (a count), tolerance (on ‖r‖²), or both")
    if n_active is not None and n_active < 0:
        raise ValueError(f"n_active is {n_active}, expected a count ≥ 0")
    limit = min(atoms.shape) if n_active is None else min(n_active, *atoms.shape)
    return _codes(_pursue(x, atoms, limit, 0.0 if tolerance is None else tolerance), atoms)


class _Pursuit(NamedTuple):
    """B pursuits of up to K atoms."""

    chosen: Tensor  # (B, K) atoms in the order taken, the index d standing for none
    triangle: Tensor  # (B, K, K) R of the QR decomposition of the chosen unit-norm atoms
    projections: Tensor  # (B, K) x in the orthonormal basis of that decomposition
    energies: Tensor  # (B, K) ‖r‖² before each atom was taken, 0 where none was


def _codes(pursuit: _Pursuit, atoms: Tensor) -> Tensor:
    """The codes (B, d): R·c = Qᵀx solved for the coefficients of the chosen atoms."""
    right = pursuit.projections[..., None]
    coefficients = torch.linalg.solve_triangular(pursuit.triangle, right, upper=True)[..., 0]
    codes = coefficients.new_zeros(len(right), atoms.shape[1] + 1).scatter_(1, pursuit.chosen, coefficients)
    return codes[:, :-1] / _norms(atoms)


def _norms(atoms: Tensor) -> Tensor:
    return atoms.norm(dim=0).clamp_min(1e-30)


def _pursue(x: Tensor, atoms: Tensor, limit: int, tolerance: Tensor | float) -> _Pursuit:
    """Rows leave the batch as they stop."""
    unit, eps = atoms / _norms(atoms), torch.finfo(x.dtype).eps
    n, d = len(x), unit.shape[1]
    chosen = torch.full((n, limit), d, device=x.device)
    basis = x.new_zeros(n, limit, x.shape[1])  # orthonormal rows spanning the chosen atoms
    triangle = torch.eye(limit, dtype=x.dtype, device=x.device).repeat(n, 1, 1)
    projections, energies = x.new_zeros(n, limit), x.new_zeros(n, limit)
    residual, rows = x.clone(), torch.arange(n, device=x.device)
    rounding = (10 * eps) ** 2 * x.square().sum(-1)
    stop = torch.maximum(rounding, torch.as_tensor(tolerance, dtype=x.dtype, device=x.device))
    for k in range(limit):
        energy = residual[rows].square().sum(-1)
        rows, energy = rows[energy > stop[rows]], energy[energy > stop[rows]]
        if not len(rows):
            break
        best = (residual[rows] @ unit).abs().scatter_(1, chosen[rows, :k], -1.0).argmax(-1)
        atom, earlier = unit[:, best].T, basis[rows, :k]
        overlap = torch.einsum("bkd,bd->bk", earlier, atom)
        left = atom - torch.einsum("bk,bkd->bd", overlap, earlier)
        again = torch.einsum("bkd,bd->bk", earlier, left)  # a second pass keeps the basis orthogonal in float32
        left = left - torch.einsum("bk,bkd->bd", again, earlier)
        length = left.norm(dim=-1)
        # Where even the best atom lies in the span of those taken, no atom can lower ‖r‖².
        new = length > 100 * eps
        rows, energy, best, length = rows[new], energy[new], best[new], length[new]
        direction = left[new] / length[:, None]
        weight = (direction * residual[rows]).sum(-1)
        chosen[rows, k], basis[rows, k], projections[rows, k], energies[rows, k] = best, direction, weight, energy
        triangle[rows, :k, k], triangle[rows, k, k] = (overlap + again)[new], length
        residual[rows] -= weight[:, None] * direction
    return _Pursuit(chosen, triangle, projections, energies)


@torch.no_grad()
def omp_at_mean_count(x: Tensor, atoms: Tensor, mean_active: float) -> Tensor:
    """OMP stopped by one global tolerance on ‖r‖², the smallest at which the *mean* count is at most `mean_active`.

    The fair rival of a coder whose count adapts to the input. A sample takes an atom exactly when its ‖r‖² before that
    exceeds the tolerance, so the tolerance is an order statistic of those energies. A short pursuit bounds it below and
    a second one down to that bound holds the answer. No sample takes more than 8·mean_active + 8 atoms.
    """
    pursuit = _pursue_to_mean_count(x, atoms, mean_active)
    taken = pursuit.energies > _energy_of_rank(pursuit.energies, int(mean_active * len(x)))
    return _codes(pursuit._replace(projections=pursuit.projections * taken), atoms)


@torch.no_grad()
def omp_residuals(x: Tensor, atoms: Tensor, mean_counts: Sequence[float]) -> Tensor:
    """‖r‖² that `omp_at_mean_count` leaves of each sample at each mean count, (n_counts, B), from one pursuit.

    What a sample takes at a small count it also takes, in the same order, at a larger one; and in the orthonormal basis
    of a pursuit ‖r‖² = ‖x‖² − Σ projection² over what was taken. The limit per sample is that of the largest count.
    """
    pursuit = _pursue_to_mean_count(x, atoms, max(mean_counts))
    energy, gains = x.double().square().sum(-1), pursuit.projections.double().square()
    left = []
    for count in mean_counts:
        taken = pursuit.energies > _energy_of_rank(pursuit.energies, int(count * len(x)))
        left.append((energy - (gains * taken).sum(-1)).clamp_min(0))
    return torch.stack(left)


def _pursue_to_mean_count(x: Tensor, atoms: Tensor, mean_active: float) -> _Pursuit:
    """A pursuit that holds at least the atoms of every smaller mean count."""
    if not mean_active >= 0:
        raise ValueError(f"mean_active is {mean_active}, expected a number ≥ 0")
    short, long = (min(int(factor * mean_active) + factor, *atoms.shape) for factor in (2, 8))
    bound = _energy_of_rank(_pursue(x, atoms, short, 0.0).energies, int(mean_active * len(x)))
    return _pursue(x, atoms, long, bound)


def _energy_of_rank(energies: Tensor, rank: int) -> Tensor:
    """The energy that `rank` others exceed, 0 where there are not as many."""
    ranked = energies.flatten().sort(descending=True).values
    return ranked[rank] if rank < len(ranked) else ranked.new_zeros(())
