"""Second thoughts about a support: add what the residual asks for, refit, drop what has become small."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from softspike.solver.correction_compiled import correct_compiled, worth_compiling
from softspike.solver.support import FLATTEST
from softspike.threshold.cut import level_for_count

__all__ = ["Corrected", "SupportCorrection"]

_ADDED = 0.15  # of the target count, in every round
_LEAST, _PACE = 0.5, 0.05  # the share of the target that is left after the first round, and what a round adds to it
_SETTLED = 0.2  # of the rounds, at the end, exchange components at the full target
# Steps of conjugate gradients: at first, after adding, after dropping, after dropping for the last time, or alone.
STEPS = _FIRST, _ADDED_TO, _DROPPED_FROM, _LAST = 1, 8, 1, 8
_ALONE = 3
_MOST = 0.9  # of a value that must not become negative, what a step takes


class Corrected(NamedTuple):
    code: Tensor  # (B, d)
    slope: Tensor  # (B, d) Aᵀ(x − Az): what every component would still gain


class SupportCorrection(nn.Module):
    """Rounds of: add i where |aᵢᵀ(x − Az)| > pₖ, fit z on its support, drop i where |zᵢ| < qₖ, fit again.

    The first round keeps the surest of the support, a share max(½, 1 − rounds/20) of the target count, and the others
    let it grow to the target: what is added then answers what the surest leave unexplained. The last fifth of the
    rounds, at the target, exchange components. The levels pₖ and qₖ are set once, so that this holds on average with
    15 % of the target added in every round; then each row is for itself. A round costs ten or so products with AᵀA, a
    fit is a few steps of conjugate gradients, as `refit_on_support` does them. Without levels, or rounds, one fit is
    all.
    """

    levels: Tensor  # (rounds, 2): pₖ and qₖ; NaN until calibrated

    def __init__(self, n_rounds: int, positive: bool = False):
        super().__init__()
        self.positive = positive
        self.register_buffer("levels", torch.full((n_rounds, 2), torch.nan))

    def forward(self, x: Tensor, atoms: Tensor, codes: Tensor) -> Corrected:
        """The corrected code of x from a first one."""
        levels = self.levels[:0] if bool(self.levels.isnan().any()) else self.levels
        if len(levels) and not self.positive and worth_compiling(x, atoms):
            return Corrected(*correct_compiled(x, atoms, codes, levels, STEPS))
        return self.plainly(x, atoms, codes, levels)

    def plainly(self, x: Tensor, atoms: Tensor, codes: Tensor, levels: Tensor) -> Corrected:
        """By dense products: the reference."""
        product, state = self._start(x, atoms, codes, _FIRST if len(levels) else _ALONE)
        for k, (add, drop) in enumerate(levels):
            state = self._grown(state, add, product)
            state = self._pruned(state, drop, product, _LAST if k + 1 == len(levels) else _DROPPED_FROM)
        return state

    @torch.no_grad()
    def calibrate(
        self, x: Tensor, atoms: Tensor, codes: Tensor, mean_active: float, weights: Tensor | None = None
    ) -> None:
        """Set the levels so that codes of x, which start as `codes`, end with `mean_active` non-zeros."""
        product, state = self._start(x, atoms, codes, _FIRST)
        for level, share in zip(self.levels, _shares(len(self.levels)), strict=True):
            gains = self._size(state.slope) * (state.code == 0)
            level[0] = level_for_count(gains, _ADDED * mean_active, weights).clamp_min(0)
            state = self._grown(state, level[0], product)
            level[1] = level_for_count(self._size(state.code), share * mean_active, weights).clamp_min(0)
            state = self._pruned(state, level[1], product, _DROPPED_FROM)

    def _size(self, value: Tensor) -> Tensor:
        return value if self.positive else value.abs()

    def _start(self, x: Tensor, atoms: Tensor, codes: Tensor, n_steps: int) -> tuple["_Product", Corrected]:
        """z ↦ AᵀAz by whichever of one product with AᵀA and two with A is cheaper, and the first fit."""
        gram = atoms.T @ atoms if atoms.shape[1] <= 2 * atoms.shape[0] else None

        def product(z: Tensor) -> Tensor:
            return (z @ atoms.T) @ atoms if gram is None else z @ gram

        slope = x @ atoms - product(codes)
        return product, _fit(Corrected(codes, slope), codes != 0, product, n_steps, self.positive)

    def _grown(self, state: Corrected, level: Tensor, product: "_Product") -> Corrected:
        new = (state.code == 0) & (self._size(state.slope) > level)
        return _fit(state, new | (state.code != 0), product, _ADDED_TO, self.positive)

    def _pruned(self, state: Corrected, level: Tensor, product: "_Product", n_steps: int) -> Corrected:
        kept = self._size(state.code) > level
        dropped = state.code * ~kept
        left = Corrected(state.code - dropped, state.slope + product(dropped))
        return _fit(left, kept, product, n_steps, self.positive)


def _shares(n_rounds: int) -> list[float]:
    """Of the target count, what each round leaves: the last ones all of it."""
    n_growing = n_rounds - round(_SETTLED * n_rounds)
    missing = min(1 - _LEAST, _PACE * n_rounds) / max(n_growing - 1, 1)
    return [1 - missing * left for left in reversed(range(n_growing))] + [1.0] * (n_rounds - n_growing)


_Product = Callable[[Tensor], Tensor]


def _fit(state: Corrected, support: Tensor, product: _Product, n_steps: int, positive: bool) -> Corrected:
    """Conjugate gradients on ½‖x − Az‖² over the support, in terms of the slope alone: z ← z + (gᵀp/pᵀAᵀAp)·p.

    No step is taken along p where ‖Ap‖² ≤ FLATTEST·‖p‖²: atoms that nearly depend on each other would get large values
    that cancel. A step that would make a value negative which must not be ends before; the others go on without it.
    """
    (z, slope), on = state, support.to(state.code.dtype)
    gradient = on * slope
    direction, before = gradient, _dot(gradient, gradient)
    for k in range(n_steps):
        bend = product(direction)
        curvature, least = _dot(direction, bend), FLATTEST * _dot(direction, direction)
        length = torch.where(curvature > least, _dot(gradient, direction) / curvature.clamp_min(1e-20), 0)
        if positive:
            length, stopped = _shortened(length, z, direction)
            on, before = on * ~stopped, before.masked_fill(stopped.any(-1, keepdim=True), torch.inf)  # starts afresh
        z, slope = torch.addcmul(z, length, direction), torch.addcmul(slope, length, bend, value=-1)
        if k + 1 < n_steps:
            gradient = on * slope
            now = _dot(gradient, gradient)
            direction, before = torch.addcmul(gradient, now / before.clamp_min(1e-20), direction), now
    return Corrected(z, slope)


def _shortened(length: Tensor, z: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """The length (B, 1) that takes at most nine tenths of any value, and the values (B, d) that shortened it."""
    room = torch.where(direction < 0, -_MOST * z / direction, torch.inf)
    most = room.amin(-1, keepdim=True)
    return torch.minimum(length, most), (most < length) & (room <= most)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """aᵀb of each row, (B, 1)."""
    return torch.linalg.vecdot(a, b)[:, None]
