"""Second thoughts about a support: add what the residual asks for, refit, drop what has become small."""

import torch
from torch import Tensor, nn

from softspike.solver.correction_compiled import CompiledRounds, correct_compiled, worth_compiling
from softspike.solver.correction_dense import STEPS, Corrected, DenseRounds
from softspike.solver.gram import KnownGram
from softspike.threshold.cut import level_for_count

__all__ = ["Corrected", "SupportCorrection"]

_ADDED = 0.15  # of the target count, in every round
_LEAST, _PACE = 0.3, 0.05  # the share of the target that is left after the first round, and what a round adds to it
_SETTLED = 0.2  # of the rounds, at the end, exchange components at the full target
_ALONE = 3  # steps of the fit where nothing is corrected


class SupportCorrection(nn.Module):
    """Rounds of: add i where |aᵢᵀ(x − Az)| > pₖ, fit z on its support, drop i where |zᵢ| < qₖ, fit again.

    The first of several rounds keeps the surest of the support, a share max(0.3, 1 − rounds/20) of the target count,
    and the others let it grow to the target: what is added then answers what the surest leave unexplained. The last
    fifth of the rounds, at the target, exchange components. The levels pₖ and qₖ are set once, so that this holds on
    average with 15 % of the target added in every round; then each row is for itself. A round costs ten or so products
    with AᵀA, a fit is a few steps of conjugate gradients, as `refit_on_support` does them. Without levels, or rounds,
    one fit is all.
    """

    levels: Tensor  # (rounds, 2): pₖ and qₖ; NaN until calibrated

    def __init__(self, n_rounds: int, positive: bool = False):
        super().__init__()
        self.positive, self.gram = positive, KnownGram()
        self.register_buffer("levels", torch.full((n_rounds, 2), torch.nan))

    def forward(self, x: Tensor, atoms: Tensor, codes: Tensor) -> Corrected:
        """The corrected code of x from a first one."""
        levels = self.levels[:0] if bool(self.levels.isnan().any()) else self.levels
        if len(levels) and worth_compiling(x, atoms):
            return correct_compiled(x, atoms, self.gram(atoms), codes, levels, STEPS, self.positive)
        return self.plainly(x, atoms, codes, levels)

    def plainly(self, x: Tensor, atoms: Tensor, codes: Tensor, levels: Tensor) -> Corrected:
        """By dense products: the reference."""
        rounds = DenseRounds(x, atoms, self.positive)
        if not len(levels):
            return rounds.start(codes, _ALONE)
        state = rounds.start(codes)
        for k, (add, drop) in enumerate(levels):
            state = rounds.pruned(rounds.grown(state, add), drop, last=k + 1 == len(levels))
        return state

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, atoms: Tensor, codes: Tensor, mean_active: float, weights: Tensor | None = None
    ) -> None:
        """Set the levels so that codes of x, which start as `codes`, end with `mean_active` non-zeros.

        None are set where that is as many as x has features: such a support fits x exactly, and what is left to correct
        is rounding. In every round at least one component of one row is added and left.
        """
        self.levels.fill_(torch.nan)
        if mean_active >= len(atoms):
            return
        least = 1 / len(x)
        rounds = (
            CompiledRounds(x, atoms, self.gram(atoms), self.positive)
            if worth_compiling(x, atoms)
            else DenseRounds(x, atoms, self.positive)
        )
        state = rounds.start(codes)
        for level, share in zip(self.levels, _shares(len(self.levels)), strict=True):
            gains = self._size(state.slope) * (state.code == 0)
            level[0] = level_for_count(gains, max(_ADDED * mean_active, least), weights).clamp_min(0)
            state = rounds.grown(state, level[0])
            level[1] = level_for_count(self._size(state.code), max(share * mean_active, least), weights).clamp_min(0)
            state = rounds.pruned(state, level[1])

    def _size(self, value: Tensor) -> Tensor:
        return value if self.positive else value.abs()


def _shares(n_rounds: int) -> list[float]:
    """Of the target count, what each round leaves: the last ones all of it."""
    n_growing = n_rounds - round(_SETTLED * n_rounds)
    missing = min(1 - _LEAST, _PACE * n_rounds) / max(n_growing - 1, 1)
    return [1 - missing * left for left in reversed(range(n_growing))] + [1.0] * (n_rounds - n_growing)
