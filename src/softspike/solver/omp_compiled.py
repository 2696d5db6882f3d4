"""Orthogonal matching pursuit from inner products (Rubinstein et al., 2008), on all cores, each sample for itself."""

import numpy as np
import torch
from torch import Tensor

from softspike.solver.omp_plain import Pursuit, pursue_plainly
from softspike.solver.threads import on_all_cores

__all__ = ["pursue_compiled"]

_NUMBERS, _MOST_ROWS, _LEAST_ROWS = 2**18, 256, 32  # entries of Aᵀx, and rows, at a time: they fit the cache
_DISTINCT = 1e4  # units of rounding that the squared sine between an atom and those before it must exceed


@torch.no_grad()
def pursue_compiled(x: Tensor, unit: Tensor, counts: Tensor, stop: Tensor) -> Pursuit:
    """What `pursue_plainly` returns, for signals x (B, D) and atoms (D, d) of unit norm, or 0, on a CPU.

    Inner products cannot tell an atom from the span of others where they are nearly alike; such samples are pursued
    plainly.
    """
    from softspike.solver.omp_kernel import pursue_rows  # numba takes a second to load

    eps, n_atoms = torch.finfo(x.dtype).eps, unit.shape[1]
    answer = Pursuit.empty(x, n_atoms, int(counts.max()) if len(x) else 0)
    rows = unit.T.contiguous()
    gram = rows @ unit
    distinct = torch.ones(len(x), dtype=torch.bool)
    goals = counts.to(torch.int64), stop.clamp_min((10 * eps) ** 2)
    bits = np.dtype(f"int{8 * x.element_size()}")
    known = tuple(value.numpy() for value in (rows, gram))

    def run(part: slice) -> None:
        signals = x[part].contiguous()
        slopes = (signals @ unit).numpy()
        arrays = (value[part].numpy() for value in (*goals, *answer, distinct))
        pursue_rows(signals.numpy(), slopes, slopes.view(bits), *known, _DISTINCT * eps, 10 * eps, *arrays)

    size = min(max(_NUMBERS // max(n_atoms, 1), _LEAST_ROWS), _MOST_ROWS)
    on_all_cores(run, [slice(begin, begin + size) for begin in range(0, len(x), size)])
    alike = (~distinct).nonzero()[:, 0]
    if len(alike):
        again = pursue_plainly(x[alike], unit, counts[alike], stop[alike])
        for whole, part, blank in zip(answer, again, Pursuit.empty(x[:1], n_atoms, 1), strict=True):
            whole[alike] = blank[0, 0]
            whole[alike, : part.shape[1]] = part
    return answer
