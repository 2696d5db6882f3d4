"""A support's correction on all cores, each row for itself, where dense products would multiply mostly zeros."""

import torch
from torch import Tensor

from softspike.kernels.compiled import WIDEST_GRAM, available
from softspike.solver.threads import on_all_cores

__all__ = ["correct_compiled", "worth_compiling"]

_ROWS = 256  # at a time
_WORTH_IT = 2**18  # entries of a batch of codes; with fewer, loading compiled code takes longer than the correction


def worth_compiling(x: Tensor, atoms: Tensor) -> bool:
    """Whether there is compiled code for it, enough to do, and nothing to be differentiated."""
    known = available() and x.device.type == "cpu" and x.dtype == atoms.dtype in (torch.float32, torch.float64)
    followed = torch.is_grad_enabled() and (x.requires_grad or atoms.requires_grad)
    d = atoms.shape[1]
    return known and not followed and len(x) * d >= _WORTH_IT and d <= min(WIDEST_GRAM, 8 * len(x))


@torch.no_grad()
def correct_compiled(
    x: Tensor, atoms: Tensor, codes: Tensor, levels: Tensor, steps: tuple[int, int, int, int]
) -> tuple[Tensor, Tensor]:
    """The corrected codes (B, d) of x (B, D) and Aᵀ(x − Az), as the rounds in `SupportCorrection` find them.

    `steps` of conjugate gradients: at first, after adding, after dropping, after dropping for the last time.
    """
    from softspike.solver.correction_kernel import correct_rows  # numba takes a second to load

    gram = (atoms.T @ atoms).numpy()
    found, slopes, known = codes.clone(memory_format=torch.contiguous_format), torch.empty_like(codes), levels.numpy()

    def run(part: slice) -> None:
        match = (x[part] @ atoms).numpy()
        correct_rows(match, found[part].numpy(), slopes[part].numpy(), gram, known, *steps)

    on_all_cores(run, [slice(begin, begin + _ROWS) for begin in range(0, len(x), _ROWS)])
    found[~(codes.isfinite() & slopes.isfinite()).all(1)] = torch.nan
    return found, slopes
