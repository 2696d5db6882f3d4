"""Where the largest of many numbers is."""

import torch
from torch import Tensor

__all__ = ["largest"]


def largest(values: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """The place of each row's maximum, the first of equals, and the maximum, both (B, 1), of values (B, n) in [0, 1].

    `places` are n, n − 1, … 1. torch's argmax is not vectorised but its maximum is, so the places are added to what is
    left of the values after their maximum is taken off and the rest blown up: the maximum of that is a place.
    Overwrites the values.
    """
    top = values.amax(-1, keepdim=True)
    blown_up = torch.finfo(values.dtype).eps ** -3  # a unit of rounding in the smallest values of interest is > n then
    place = torch.add(places, values.sub_(top), alpha=blown_up, out=values).amax(-1, keepdim=True)
    return values.shape[1] - place.long(), top
