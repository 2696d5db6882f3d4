"""Orthogonal matching pursuit by an explicit orthonormal basis, the residual at hand: the plain reference."""

import torch
from torch import Tensor

from softspike.solver.pursuit import Pursuit

__all__ = ["pursue_plainly"]


@torch.no_grad()
def pursue_plainly(x: Tensor, unit: Tensor, limit: int, tolerance: Tensor | float) -> Pursuit:
    """Each round adds the atom with the largest |aᵢᵀr| and refits all chosen ones (a QR update, twice orthogonalised).

    The atoms (D, d) have unit norm, or are 0. Rows leave the batch as they stop.
    """
    n, d, eps = len(x), unit.shape[1], torch.finfo(x.dtype).eps
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
    coefficients = torch.linalg.solve_triangular(triangle, projections[..., None], upper=True)[..., 0]
    return Pursuit(chosen, coefficients, projections, energies)
