"""Batched FISTA for min_z ½‖x − Az‖² + λ‖z‖₁, stopped sample by sample on the duality gap: the plain reference."""

import torch
from torch import Tensor

from softspike.layers import gram_product
from softspike.solver.bound import largest_eigenvalue
from softspike.solver.gap import LassoResult, column, lasso_gap
from softspike.solver.given import check_given
from softspike.threshold.functions import soft_threshold

__all__ = ["fista"]


@torch.no_grad()
def fista(
    x: Tensor,
    atoms: Tensor,
    penalty: Tensor | float,
    *,
    start: Tensor | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 1000,
    check_every: int = 10,
    positive: bool = False,
) -> LassoResult:
    """Codes (B, d) of x (B, D) on atoms (D, d). A sample is done when its duality gap is below tolerance·½‖x‖².

    The penalty is a number or one per sample, (B,) or (B, 1). Steps of 1/L along Aᵀ(x − Az), by AᵀA where that is less
    work than A and Aᵀ, d ≤ 2D; momentum restarted where it points uphill; finished samples leave the batch. `lasso`
    solves the same problem several times faster.
    """
    check_given(x, atoms)
    product = gram_product(atoms)
    correlation, level = x @ atoms, column(penalty, x)
    step = 1 / largest_eigenvalue(atoms)
    codes = torch.zeros_like(correlation) if start is None else start.clone()
    gap = torch.full_like(x[:, 0], torch.inf)
    floor = tolerance * (0.5 * x.square().sum(-1)).clamp_min(1e-30)
    rows = torch.arange(len(x), device=x.device)
    z = y = codes
    t = torch.ones_like(x[:, :1])
    iteration = 0
    while len(rows) and iteration < max_iterations:
        for _ in range(min(check_every, max_iterations - iteration)):
            new = _proximal(y - step * (product(y) - correlation[rows]), step * level[rows], positive)
            uphill = ((y - new) * (new - z)).sum(-1, keepdim=True) > 0
            t = torch.where(uphill, 1.0, t)
            t_new = (1 + torch.sqrt(1 + 4 * t.square())) / 2
            y = new + torch.where(uphill, 0.0, (t - 1) / t_new) * (new - z)
            z, t = new, t_new
            iteration += 1
        gap[rows] = lasso_gap(x[rows], atoms, z, level[rows], positive)
        codes[rows] = z
        going = gap[rows] > floor[rows]
        rows, z, y, t = rows[going], z[going], y[going], t[going]
    return LassoResult(codes, gap / (0.5 * x.square().sum(-1)).clamp_min(1e-30), iteration)


def _proximal(s: Tensor, level: Tensor, positive: bool) -> Tensor:
    return (s - level).clamp_min(0) if positive else soft_threshold(s, level)
