"""The lasso, min_z ½‖x − Az‖² + λ‖z‖₁, solved sample by sample to a duality gap: the fast road."""

import torch
from torch import Tensor

from softspike.kernels.compiled import WIDEST_GRAM, accepts
from softspike.solver.fista import fista
from softspike.solver.gap import LassoResult, column
from softspike.solver.given import check_given
from softspike.solver.lasso_compiled import coordinate_descent
from softspike.solver.proximal import proximal
from softspike.solver.signals import Answer, Atoms, Signals
from softspike.solver.threads import on_all_cores
from softspike.solver.working import working_set

__all__ = ["lasso"]

_NUMBERS, _MOST_ROWS, _LEAST_ROWS = 2**19, 256, 32  # entries of Aᵀx, and rows, solved at a time: they fit the cache
_NUMBERS_ON_GPU = 2**25
_WORTH_IT = 2**14  # entries of codes; with fewer, loading compiled code takes longer than the solution
_UNGUARDED = 500  # steps without a guarantee at most; very few samples need as many
_ROUNDING = 32  # units of rounding over ½‖x‖² below which a gap cannot be told from 0


@torch.no_grad()
def lasso(
    x: Tensor,
    atoms: Tensor,
    penalty: Tensor | float,
    *,
    start: Tensor | None = None,
    tolerance: float = 1e-3,
    max_iterations: int = 1000,
    positive: bool = False,
) -> LassoResult:
    """Codes (B, d) of x (B, D) on atoms (D, d). A sample is done when its duality gap is below tolerance·½‖x‖².

    The penalty is a number or one per sample, (B,) or (B, 1). On a CPU coordinates descend in compiled code; elsewhere
    narrow dictionaries are descended over whole, wide ones on working sets. Such steps carry no guarantee, the gap
    does: samples that have not reached it after half of the iterations, or 500, are given to FISTA.
    """
    check_given(x, atoms)
    level = column(penalty, x)
    if not bool((level > 0).all()):
        raise ValueError(f"the penalty is {float(level.min()):g} at its smallest, expected numbers > 0")
    unguarded = min(max_iterations // 2, _UNGUARDED)
    if _compilable(x, atoms):
        answer = Answer.empty(x, atoms.shape[1]) if start is None else Answer.starting(start)
        coordinate_descent(
            x, atoms, level, answer, tolerance=tolerance, max_sweeps=unguarded, positive=positive,
            warm=start is not None,
        )  # fmt: skip
    else:
        answer = _in_products(x, atoms, level, start, tolerance, unguarded, positive)
    codes, steps = answer.codes, int(answer.steps.max()) if len(x) else 0
    reachable = max(tolerance, _ROUNDING * torch.finfo(x.dtype).eps)
    left = (~(answer.gap <= reachable)).nonzero()[:, 0]
    if len(left):
        again = fista(
            x[left], atoms, level[left], start=codes[left].nan_to_num(0, 0, 0), tolerance=tolerance,
            max_iterations=max_iterations - unguarded, positive=positive,
        )  # fmt: skip
        codes[left], answer.gap[left], steps = again.codes, again.gap, steps + again.n_iterations
    return LassoResult(codes, answer.gap, steps)


def _compilable(x: Tensor, atoms: Tensor) -> bool:
    n_atoms = atoms.shape[1]
    enough = len(x) * n_atoms >= _WORTH_IT and n_atoms <= WIDEST_GRAM
    return enough and accepts(x)


def _in_products(
    x: Tensor, atoms: Tensor, level: Tensor, start: Tensor | None, tolerance: float, max_steps: int, positive: bool
) -> Answer:
    """Many samples in step, by matrix products: on any device."""
    known, answer = Atoms(atoms, len(x)), Answer.empty(x, atoms.shape[1])
    solve = working_set if known.wide else proximal

    def solve_rows(rows: Tensor) -> None:
        signals = Signals.of(rows, x.index_select(0, rows) / level[rows], known, tolerance)
        begin = None if start is None else start[rows] / level[rows]
        solve(signals, known, answer, max_steps=max_steps, start=begin, positive=positive)

    groups = _alike(x, level, known.n)
    if x.is_cuda:
        for rows in groups:
            solve_rows(rows)
    else:
        on_all_cores(solve_rows, groups)
    answer.codes.mul_(level)
    return answer


def _alike(x: Tensor, level: Tensor, n_components: int) -> list[Tensor]:
    """Rows in groups of equal size, the largest ‖x‖/λ first: such samples need about as many atoms and steps."""
    order = (x.square().sum(-1) / level[:, 0].square()).argsort(descending=True)
    if x.is_cuda:
        return list(order.split(max(_NUMBERS_ON_GPU // n_components, 1)))
    size = min(max(_NUMBERS // n_components, _LEAST_ROWS), _MOST_ROWS, -(-len(x) // 2))
    return list(order.split(max(size, 1))) if len(x) else []
