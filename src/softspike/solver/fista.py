"""Batched FISTA for min_z ½‖x − Az‖² + λ‖z‖₁, stopped sample by sample on the duality gap."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.threshold.functions import soft_threshold

__all__ = ["FistaResult", "fista", "lasso_gap"]


class FistaResult(NamedTuple):
    codes: Tensor  # (B, d)
    gap: Tensor  # (B,) duality gap over ½‖x‖²
    n_iterations: int


def lasso_gap(x: Tensor, atoms: Tensor, codes: Tensor, penalty: Tensor | float, positive: bool = False) -> Tensor:
    """P(z) − D(θ) with θ = r·min(1, λ/‖Aᵀr‖∞) and D(θ) = ½‖x‖² − ½‖x − θ‖², per sample, (B,)."""
    residual = x - codes @ atoms.T
    correlation = residual @ atoms
    largest = (correlation if positive else correlation.abs()).amax(-1).clamp_min(1e-30)
    scale = torch.clamp(penalty / largest, max=1.0)[:, None]
    primal = 0.5 * residual.square().sum(-1) + penalty * codes.abs().sum(-1)
    dual = 0.5 * x.square().sum(-1) - 0.5 * (x - scale * residual).square().sum(-1)
    return primal - dual


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
) -> FistaResult:
    """Codes (B, d) of x (B, D) on atoms (D, d). A sample is done when its duality gap is below tolerance·½‖x‖².

    Steps of 1/L on the Gram matrix, momentum restarted where it points uphill; finished samples leave the batch.
    """
    gram, correlation = atoms.T @ atoms, x @ atoms
    step = 1 / _largest_eigenvalue(gram)
    codes = torch.zeros_like(correlation) if start is None else start.clone()
    gap = torch.full_like(x[:, 0], torch.inf)
    floor = tolerance * (0.5 * x.square().sum(-1)).clamp_min(1e-30)
    rows = torch.arange(len(x), device=x.device)
    z = y = codes
    t = torch.ones_like(x[:, :1])
    iteration = 0
    while len(rows) and iteration < max_iterations:
        for _ in range(min(check_every, max_iterations - iteration)):
            new = _proximal(y - step * (y @ gram - correlation[rows]), step * penalty, positive)
            uphill = ((y - new) * (new - z)).sum(-1, keepdim=True) > 0
            t = torch.where(uphill, 1.0, t)
            t_new = (1 + torch.sqrt(1 + 4 * t.square())) / 2
            y = new + torch.where(uphill, 0.0, (t - 1) / t_new) * (new - z)
            z, t = new, t_new
            iteration += 1
        gap[rows] = lasso_gap(x[rows], atoms, z, penalty, positive)
        codes[rows] = z
        going = gap[rows] > floor[rows]
        rows, z, y, t = rows[going], z[going], y[going], t[going]
    return FistaResult(codes, gap / (0.5 * x.square().sum(-1)).clamp_min(1e-30), iteration)


def _proximal(s: Tensor, level: Tensor | float, positive: bool) -> Tensor:
    return (s - level).clamp_min(0) if positive else soft_threshold(s, level)


def _largest_eigenvalue(gram: Tensor) -> float:
    return float(torch.linalg.matrix_norm(gram, 2)) * (1 + 1e-6) + 1e-30
