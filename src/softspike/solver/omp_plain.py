"""Orthogonal matching pursuit by an explicit orthonormal basis, the residual at hand: the plain reference."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Pursuit", "pursue_plainly"]


class Pursuit(NamedTuple):
    """B pursuits of up to K atoms."""

    chosen: Tensor  # (B, K) atoms in the order taken, the index d standing for none
    coefficients: Tensor  # (B, K) least squares on all that were taken
    projections: Tensor  # (B, K) x in the orthonormal basis that they span, in order
    energies: Tensor  # (B, K) ‖r‖² before each atom was taken, 0 where none was; float64

    @staticmethod
    def empty(x: Tensor, n_atoms: int, limit: int) -> "Pursuit":
        chosen = torch.full((len(x), limit), n_atoms, device=x.device)
        coefficients, projections = (x.new_zeros(len(x), limit) for _ in range(2))
        return Pursuit(chosen, coefficients, projections, x.new_zeros(len(x), limit, dtype=torch.float64))


@torch.no_grad()
def pursue_plainly(x: Tensor, unit: Tensor, counts: Tensor, stop: Tensor, limit: int | None = None) -> Pursuit:
    """Each round adds the atom with the largest |aᵢᵀr| and refits all chosen ones (a QR update, twice orthogonalised).

    The signals x (B, D) and the atoms (D, d) have unit norm, or are 0. A row leaves the batch at its count (B,), at
    ‖r‖² ≤ stop (B,), or where no atom can lower ‖r‖². The result has room for `limit` atoms, the largest count if None.
    """
    eps = torch.finfo(x.dtype).eps
    limit = int(counts.max()) if limit is None and len(x) else limit or 0
    chosen, _, projections, energies = Pursuit.empty(x, unit.shape[1], limit)
    basis = x.new_zeros(len(x), limit, x.shape[1])  # orthonormal rows spanning the chosen atoms
    triangle = torch.eye(limit, dtype=x.dtype, device=x.device).repeat(len(x), 1, 1)
    residual, rows = x.clone(), torch.arange(len(x), device=x.device)
    stop = stop.clamp_min((10 * eps) ** 2)
    for k in range(limit):
        energy = residual[rows].square().sum(-1).double()
        going = (energy > stop[rows]) & (counts[rows] > k)
        rows, energy = rows[going], energy[going]
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
    coefficients = torch.linalg.solve_triangular(triangle, projections[..., None], upper=True)[..., 0]
    return Pursuit(chosen, coefficients, projections, energies)
