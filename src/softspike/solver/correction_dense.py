"""The rounds of a support's correction by dense products: the reference."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.layers import gram_product

__all__ = ["FLATTEST", "MOST", "STEPS", "Corrected", "DenseRounds"]

# Steps of conjugate gradients: at first, after adding, after dropping, after dropping for the last time.
STEPS = _FIRST, _ADDED_TO, _DROPPED_FROM, _LAST = 1, 8, 1, 8
FLATTEST = 1e-3  # ‖Ap‖²/‖p‖² along which a fit still moves; atoms have length 1
MOST = 0.9  # of a value that must not become negative, what a step takes

_Product = Callable[[Tensor], Tensor]


class Corrected(NamedTuple):
    code: Tensor  # (B, d)
    slope: Tensor  # (B, d) Aᵀ(x − Az): what every component would still gain


class DenseRounds:
    """What a round is made of, for inputs x and atoms A: codes and slopes, grown and pruned at given levels."""

    def __init__(self, x: Tensor, atoms: Tensor, positive: bool):
        self.match, self.positive, self.product = x @ atoms, positive, gram_product(atoms)

    def start(self, codes: Tensor, n_steps: int = _FIRST) -> Corrected:
        """The first code, fitted on its support."""
        state = Corrected(codes, self.match - self.product(codes))
        return _fit(state, codes != 0, self.product, n_steps, self.positive)

    def grown(self, state: Corrected, level: Tensor) -> Corrected:
        """With all i where |aᵢᵀ(x − Az)| exceeds the level."""
        new = (state.code == 0) & (self._size(state.slope) > level)
        return _fit(state, new | (state.code != 0), self.product, _ADDED_TO, self.positive)

    def pruned(self, state: Corrected, level: Tensor, last: bool = False) -> Corrected:
        """Without the i where |zᵢ| does not exceed the level."""
        kept = self._size(state.code) > level
        dropped = state.code * ~kept
        left = Corrected(state.code - dropped, state.slope + self.product(dropped))
        return _fit(left, kept, self.product, _LAST if last else _DROPPED_FROM, self.positive)

    def _size(self, value: Tensor) -> Tensor:
        return value if self.positive else value.abs()


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
    room = torch.where(direction < 0, -MOST * z / direction, torch.inf)
    most = room.amin(-1, keepdim=True)
    return torch.minimum(length, most), (most < length) & (room <= most)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """aᵀb of each row, (B, 1)."""
    return torch.linalg.vecdot(a, b)[:, None]
