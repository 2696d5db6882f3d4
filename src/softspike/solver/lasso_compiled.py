"""The lasso by coordinate descent in compiled code, on all cores, each sample for itself."""

import torch
from torch import Tensor

from softspike.solver.signals import Answer
from softspike.solver.threads import on_all_cores

__all__ = ["coordinate_descent"]

_NUMBERS, _MOST_ROWS, _LEAST_ROWS = 2**18, 256, 16  # entries of Aᵀx, and rows, at a time: they fit the cache
_SPARE = 64  # atoms that a sample may work with beyond two for every feature


def coordinate_descent(
    x: Tensor, atoms: Tensor, level: Tensor, answer: Answer, *, tolerance: float, max_sweeps: int, positive: bool,
    warm: bool,
) -> None:  # fmt: skip
    """Fill in the answer for x (B, D) at λ (B, 1) on a CPU; if warm, its codes hold the start.

    Rounds of: look at all atoms, let the worst violators of |aᵢᵀr| ≤ λ join, sweep over the few at work on their own
    Gram matrix. The gap is taken over all atoms.
    """
    from softspike.solver.lasso_kernel import descend_rows  # numba takes a second to load

    gram = (atoms.T @ atoms).numpy()
    most = min(atoms.shape[1], 2 * atoms.shape[0] + _SPARE)

    def run(part: slice) -> None:
        units = level[part]
        signals, codes = x[part] / units, answer.codes[part]
        if warm:
            codes /= units
        half = 0.5 * signals.double().square().sum(-1)
        gap = torch.empty_like(half)
        descend_rows(
            (signals @ atoms).numpy(), gram, (2 * half).numpy(), (tolerance * half).numpy(), units[:, 0].numpy(),
            max_sweeps, positive, warm, most, codes.numpy(), gap.numpy(), answer.steps[part].numpy(),
        )  # fmt: skip
        answer.gap[part] = (gap / half.clamp_min(1e-30)).to(x.dtype)

    size = min(max(_NUMBERS // atoms.shape[1], _LEAST_ROWS), _MOST_ROWS, max(-(-len(x) // 2), 1))
    on_all_cores(run, [slice(begin, begin + size) for begin in range(0, len(x), size)])
