"""All pursuits of a batch: in groups that fit the cache, on all cores, plainly where inner products are not enough."""

import torch
from torch import Tensor

from softspike.solver.omp_plain import pursue_plainly
from softspike.solver.pursuit import Chase, Pursuit, Unit
from softspike.solver.threads import on_all_cores

__all__ = ["pursue"]

_NUMBERS, _MOST_ROWS, _LEAST_ROWS = 2**18, 512, 64  # entries of Aᵀr, and rows, pursued together
SIZE = 0
_LOOK_EVERY = 4  # atoms, at who has stopped and what has worn down
_FRESH = 0.01  # share of ‖r‖² down to which it may be updated
_DISTINCT = 1e4  # units of rounding that the squared sine between atoms must exceed


@torch.no_grad()
def pursue(x: Tensor, atoms: Tensor, limit: int, stop: Tensor | float, counts: Tensor | None = None) -> Pursuit:
    """Pursuits of x (B, D) on atoms (D, d) of unit norm, or 0, up to `limit` atoms or ‖r‖² ≤ stop.

    `counts` (B,) are limits of each sample's own.
    """
    n, unit = len(x), Unit(atoms, len(x) * limit)
    floor = torch.as_tensor(stop, dtype=x.dtype, device=x.device).reshape(-1, 1).expand(n, 1)
    norms = x.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    answer = Pursuit(torch.full((n, limit), unit.n, device=x.device), *(x.new_zeros(n, limit) for _ in range(3)))
    distinct = x.new_ones(n)

    def store(chase: Chase) -> None:
        for whole, part in zip(answer, chase.result(limit, unit.n, norms[chase.places]), strict=True):
            whole.index_copy_(0, chase.places, part)
        distinct.index_copy_(0, chase.places, chase.distinct[:, 0])

    def run(rows: Tensor) -> None:
        signals = x.index_select(0, rows) / norms[rows]
        chase = Chase.begin(rows, signals, unit, limit, floor[rows] / norms[rows].square())
        for k in range(limit):
            if counts is not None:
                chase.live = chase.live * (counts[chase.places, None] > k)
            chase.take(unit, k)
            if (k + 1) % _LOOK_EVERY and k + 1 < limit:
                continue
            live = chase.live[:, 0].nonzero()[:, 0]
            if len(live) < 0.7 * len(chase.live):
                store(chase)
                if not len(live):
                    return
                chase = chase.at(live)
            worn = (chase.energy < _FRESH * chase.fresh)[:, 0].nonzero()[:, 0]
            if len(worn):
                chase.refresh(unit, k + 1, worn)
        store(chase)

    groups = _groups(x, unit.n) if limit and n else []
    if x.is_cuda:
        for rows in groups:
            run(rows)
    else:
        on_all_cores(run, groups)
    alike = (distinct < _DISTINCT * torch.finfo(x.dtype).eps).nonzero()[:, 0]
    if len(alike):
        for whole, part in zip(answer, pursue_plainly(x[alike], atoms, limit, floor[alike, 0]), strict=True):
            whole[alike] = part
    return answer


def _groups(x: Tensor, n_components: int) -> list[Tensor]:
    """Rows by falling ‖x‖: such samples stop at about the same count."""
    size = SIZE or min(max(_NUMBERS // n_components, _LEAST_ROWS), _MOST_ROWS)
    return list(x.square().sum(-1).argsort(descending=True).split(2**12 if x.is_cuda else size))
