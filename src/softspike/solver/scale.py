"""Vectors of unit norm, whatever their size."""

import torch
from torch import Tensor

__all__ = ["unit_and_norm"]


def unit_and_norm(values: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """v/‖v‖ and ‖v‖ along an axis that is kept; 0 and 1 where v is 0 or not finite.

    Values are divided by the largest first: squares of 1e-30 and of 1e30 are none in float32.
    """
    largest = values.abs().amax(dim, keepdim=True)  # not a number where one of the values is none
    finite = largest.isfinite()
    if not bool(finite.all()):
        values = torch.where(finite, values, 0.0)
    largest = torch.where(finite & (largest > 0), largest, 1.0)
    scaled = values / largest
    norm = scaled.norm(dim=dim, keepdim=True)
    norm = torch.where(norm > 0, norm, 1.0)
    return scaled.div_(norm), norm * largest
