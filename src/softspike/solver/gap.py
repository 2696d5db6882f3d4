"""The lasso's certificate: how far a code can be from the best one."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["LassoResult", "column", "gap_of_slope", "lasso_gap"]


class LassoResult(NamedTuple):
    codes: Tensor  # (B, d)
    gap: Tensor  # (B,) duality gap over ½‖x‖²
    n_iterations: int  # of the slowest sample


def column(penalty: Tensor | float, x: Tensor) -> Tensor:
    """λ as (B, 1), from a number or from one number per sample, (B,) or (B, 1)."""
    given = torch.as_tensor(penalty, dtype=x.dtype, device=x.device)
    if given.numel() not in (1, len(x)):
        raise ValueError(f"the penalty has shape {tuple(given.shape)}, expected a number or {len(x)}, one per sample")
    return given.reshape(-1, 1).expand(len(x), 1)


def lasso_gap(x: Tensor, atoms: Tensor, codes: Tensor, penalty: Tensor | float, positive: bool = False) -> Tensor:
    """P(z) − D(θ) with θ = r·min(1, λ/‖Aᵀr‖∞) and D(θ) = ½‖x‖² − ½‖x − θ‖², per sample, (B,)."""
    residual = x - codes @ atoms.T
    slope, level = residual @ atoms, column(penalty, x)[:, 0]
    largest = (slope if positive else slope.abs()).amax(-1).clamp_min(1e-30)
    scale = torch.clamp(level / largest, max=1.0)[:, None]
    primal = 0.5 * residual.square().sum(-1) + level * codes.abs().sum(-1)
    dual = 0.5 * x.square().sum(-1) - 0.5 * (x - scale * residual).square().sum(-1)
    return primal - dual


def gap_of_slope(energy: Tensor, start: Tensor, codes: Tensor, slope: Tensor, largest: Tensor) -> Tensor:
    """The same at λ = 1 from what an iteration knows: ‖x‖² (B, 1), Aᵀx, z, Aᵀr, and max Aᵀr or max |Aᵀr| (B, 1).

    With c = Aᵀx:  xᵀr = ‖x‖² − cᵀz,  ‖r‖² = xᵀr − zᵀAᵀr,  D = s·xᵀr − ½s²‖r‖².
    """
    product = energy - (start * codes).sum(-1, keepdim=True)
    residual = product - (slope * codes).sum(-1, keepdim=True)
    scale = torch.clamp(1 / largest.clamp_min(1e-30), max=1.0)
    dual = scale * product - 0.5 * scale.square() * residual
    return 0.5 * residual + codes.abs().sum(-1, keepdim=True) - dual
