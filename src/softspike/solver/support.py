"""Least squares on a support already chosen."""

from torch import Tensor

__all__ = ["refit_on_support"]


def refit_on_support(x: Tensor, atoms: Tensor, codes: Tensor, n_steps: int = 1) -> Tensor:
    """n steps of conjugate gradients on ½‖x − Az‖² over the non-zero entries of each code; zeros stay zero.

    g = 1[z≠0]·Aᵀ(x − Az),  z ← z + (gᵀp/‖Ap‖²)·p: the first step is steepest descent with exact line search, so the
    error of no sample can rise.
    """
    support = (codes != 0).to(codes.dtype)
    residual = x - codes @ atoms.T
    slope = support * (residual @ atoms)
    direction, before = slope, slope.square().sum(-1, keepdim=True)
    for _ in range(n_steps):
        image = direction @ atoms.T
        length = (slope * direction).sum(-1, keepdim=True) / image.square().sum(-1, keepdim=True).clamp_min(1e-20)
        codes, residual = codes + length * direction, residual - length * image
        slope = support * (residual @ atoms)
        now = slope.square().sum(-1, keepdim=True)
        direction, before = slope + now / before.clamp_min(1e-20) * direction, now
    return codes
