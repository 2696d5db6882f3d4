"""A support's correction on all cores, each row for itself, where dense products would multiply mostly zeros."""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softspike.kernels.compiled import WIDEST_GRAM, accepts
from softspike.solver.correction_dense import STEPS, Corrected
from softspike.solver.threads import on_all_cores

__all__ = ["CompiledRounds", "correct_compiled", "worth_compiling"]

_ROWS = 256  # at a time
_FIRST, _ADDED_TO, _DROPPED_FROM, _ = STEPS
_WORTH_IT = 2**16  # entries of a batch of codes; of fewer, some calls take less time than loading compiled code

Floats = NDArray[np.floating]
Steps = tuple[int, int, int, int]


def worth_compiling(x: Tensor, atoms: Tensor) -> bool:
    """Whether there is compiled code for it, enough to do, and nothing to be differentiated."""
    known = accepts(x) and x.dtype == atoms.dtype
    followed = torch.is_grad_enabled() and (x.requires_grad or atoms.requires_grad)
    d = atoms.shape[1]
    return known and not followed and len(x) * d >= _WORTH_IT and d <= WIDEST_GRAM


class CompiledRounds:
    """What `DenseRounds` does, a part of a round at a time, where levels are still to be set."""

    def __init__(self, x: Tensor, atoms: Tensor, gram: Tensor, positive: bool):
        self.match, self.gram, self.positive = (x @ atoms).numpy(), gram.numpy(), positive

    def start(self, codes: Tensor) -> Corrected:
        return self._part(codes, (), (_FIRST, 0, 0, 0))

    def grown(self, state: Corrected, level: Tensor) -> Corrected:
        return self._part(state.code, (float(level), -1.0), (0, _ADDED_TO, 0, 0))

    def pruned(self, state: Corrected, level: Tensor) -> Corrected:
        return self._part(state.code, (math.inf, float(level)), (0, 0, 0, _DROPPED_FROM))

    def _part(self, codes: Tensor, levels: tuple[float, ...], steps: Steps) -> Corrected:
        """Nothing is added above a level of infinity, nothing dropped below one of −1."""
        known = np.array(levels, self.gram.dtype).reshape(-1, 2)
        return _correct(lambda part: self.match[part], codes, self.gram, known, steps, self.positive)


@torch.no_grad()
def correct_compiled(
    x: Tensor, atoms: Tensor, gram: Tensor, codes: Tensor, levels: Tensor, steps: Steps, positive: bool = False
) -> Corrected:
    """The corrected codes (B, d) of x (B, D) and Aᵀ(x − Az), as the rounds in `SupportCorrection` find them.

    `gram` is AᵀA; `steps` of conjugate gradients: at first, after adding, after dropping, after dropping for the last
    time.
    """
    return _correct(lambda part: (x[part] @ atoms).numpy(), codes, gram.numpy(), levels.numpy(), steps, positive)


def _correct(
    match: Callable[[slice], Floats], codes: Tensor, gram: Floats, levels: Floats, steps: Steps, positive: bool
) -> Corrected:
    from softspike.solver.correction_kernel import correct_rows  # numba takes a second to load

    found, slopes = codes.clone(memory_format=torch.contiguous_format), torch.empty_like(codes)

    def run(part: slice) -> None:
        correct_rows(match(part), found[part].numpy(), slopes[part].numpy(), gram, levels, steps, positive)

    on_all_cores(run, [slice(begin, begin + _ROWS) for begin in range(0, len(codes), _ROWS)])
    found[~(codes.isfinite() & slopes.isfinite()).all(1)] = torch.nan
    return Corrected(found, slopes)
