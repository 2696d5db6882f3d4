"""Which atoms look alike: within one dictionary, and between two."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.metric.recovery import match

__all__ = ["Neighbours", "Pairs", "likeness_order", "nearest_atoms", "pair_atoms"]

_PAIRS = 2**24  # cosines held at a time: 64 MiB


class Neighbours(NamedTuple):
    """The k most alike atoms of each one, by falling |cos|."""

    atom: Tensor  # (d, k)
    cosine: Tensor  # (d, k) signed


class Pairs(NamedTuple):
    """Atoms of two dictionaries matched one to one, by falling |cos|."""

    first: Tensor  # (n,) with n the smaller number of atoms
    second: Tensor  # (n,)
    cosine: Tensor  # (n,) signed: below 0 the second is a mirror image


def nearest_atoms(atoms: Tensor, k: int) -> Neighbours:
    """cos(aᵢ, aⱼ) = aᵢᵀaⱼ/(‖aᵢ‖‖aⱼ‖), its k largest absolute values over j ≠ i; atoms are the rows of (d, D)."""
    unit, d = _unit(atoms), len(atoms)
    k, block = min(k, d - 1), max(_PAIRS // d, 1)
    index, cosine = torch.empty(d, k, dtype=torch.long), torch.empty(d, k)
    for first in range(0, d, block):
        rows = torch.arange(first, min(first + block, d))
        cosines = unit[rows] @ unit.T
        size = cosines.abs()
        size[torch.arange(len(rows)), rows] = -1.0
        index[rows] = size.topk(k, dim=1).indices
        cosine[rows] = cosines.gather(1, index[rows])
    return Neighbours(index, cosine)


def likeness_order(atoms: Tensor, start: int = 0) -> Tensor:
    """A walk through all atoms (d, D) that goes on, from `start`, to the most alike (|cos|) not yet visited; (d,)."""
    unit, d = _unit(atoms), len(atoms)
    order, open_ = torch.empty(d, dtype=torch.long), torch.zeros(d)
    here = start
    for place in range(d):
        order[place] = here
        open_[here] = -2.0  # |cos| ≤ 1, so what is visited stays below all that is not
        here = int((unit @ unit[here]).abs_().add_(open_).argmax())
    return order


def pair_atoms(first: Tensor, second: Tensor) -> Pairs:
    """The one-to-one matching of the rows of (d, D) and (m, D) with the largest sum of |cos|."""
    cosines = _unit(first) @ _unit(second).T
    pairs = match(cosines.abs())
    cosine = cosines[pairs]
    order = cosine.abs().argsort(descending=True, stable=True)
    return Pairs(pairs.found[order], pairs.truth[order], cosine[order])


def _unit(atoms: Tensor) -> Tensor:
    """Rows of unit norm; zero rows stay zero."""
    return atoms.float() / atoms.float().norm(dim=1, keepdim=True).clamp_min(1e-30)
