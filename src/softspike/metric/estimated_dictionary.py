"""The linear picture of any generator: the atoms that best rebuild data from codes."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["EstimatedDictionary", "estimated_dictionary"]


class EstimatedDictionary(NamedTuple):
    atoms: Tensor  # (D, d)
    offset: Tensor  # (D,), 0 without an intercept


def estimated_dictionary(x: Tensor, codes: Tensor, intercept: bool = True) -> EstimatedDictionary:
    """argmin over A (and b) of Σ‖x − Az − b‖², the shortest one where several are: x (N, D), codes (N, d).

    Without the intercept it is X·pinv(Z), as published. Through d×d normal equations in float64: N may be large.
    """
    z_mean, x_mean = (t.double().mean(0) if intercept else t.new_zeros(t.shape[1]).double() for t in (codes, x))
    gram = torch.zeros(codes.shape[1], codes.shape[1], dtype=torch.float64, device=x.device)
    cross = torch.zeros(x.shape[1], codes.shape[1], dtype=torch.float64, device=x.device)
    for part, data in zip(codes.split(8192), x.split(8192), strict=True):
        z = part.double() - z_mean
        gram += z.T @ z
        cross += (data.double() - x_mean).T @ z
    atoms = cross @ torch.linalg.pinv(gram, rtol=1e-12, hermitian=True)
    return EstimatedDictionary(atoms.to(x.dtype), (x_mean - atoms @ z_mean).to(x.dtype))
