"""Proximal gradient steps whose length each sample takes from its own last step (Barzilai and Borwein, 1988)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softshrink

from softspike.solver.gap import gap_of_slope
from softspike.solver.signals import Answer, Atoms, Signals

__all__ = ["Point", "descend", "proximal"]

_CHECK_EVERY = 4  # steps; a look at the gap costs a sixth of a step


class Point(NamedTuple):
    """Where B samples are, in units in which λ = 1."""

    codes: Tensor  # z, (B, k)
    slope: Tensor  # Aᵀ(x − Az), (B, k)
    curvature: Tensor  # τ, (B, 1)


def descend(
    point: Point, bend: Callable[[Tensor], Tensor], n_steps: int, least: Tensor, positive: bool = False
) -> Point:
    """n steps of z ← soft(z + Aᵀr/τ, 1/τ) with the curvature τ met on the step before.

    With s = Δz and g = AᵀAs where s is not 0, by turns τ = sᵀg/‖s‖² and τ = ‖g‖²/sᵀg; `bend` is s ↦ AᵀAs, one product
    a step. Such steps need no bound on AᵀA, which for the few active atoms of an overcomplete dictionary is far too
    careful, and take a third of FISTA's iterations. They may go uphill for a while and come with no guarantee: callers
    look at the duality gap. `least` keeps τ away from 0.
    """
    z, slope, curvature = point
    for number in range(n_steps):
        aim = torch.addcmul(slope, z, curvature)
        new = ((aim - 1).clamp_min_(0) if positive else softshrink(aim, 1.0)).div_(curvature)
        move = torch.sub(new, z, out=aim)
        bent = bend(move)
        rise = (move * bent).sum(-1, keepdim=True)
        met = (bent * move.sign()).square_().sum(-1, keepdim=True) / rise if number % 2 else rise / _energy(move)
        curvature = torch.where(rise > 0, met, curvature).clamp_min(least)
        z, slope = new, slope - bent
    return Point(z, slope, curvature)


def _energy(values: Tensor) -> Tensor:
    return values.square().sum(-1, keepdim=True)


def proximal(
    signals: Signals,
    atoms: Atoms,
    answer: Answer,
    *,
    max_steps: int,
    start: Tensor | None,
    positive: bool,
    begun: int = 0,
) -> None:
    """Descend over all atoms at once; a sample leaves when its gap is reached, and the answer has it.

    From a given start steps are taken before the first look: the codes of a neighbouring λ have a small gap, too.
    """
    z, slope = torch.zeros_like(signals.correlation), signals.correlation
    if start is not None:
        z[:, : atoms.n] = start
        slope = slope - atoms.bend(z)
    point = Point(z, slope, atoms.typical.expand(len(z), 1))
    if start is not None and begun + _CHECK_EVERY <= max_steps:
        point, begun = descend(point, atoms.bend, _CHECK_EVERY, atoms.least, positive), begun + _CHECK_EVERY
    for done in range(begun, max_steps + 1, _CHECK_EVERY):
        largest = point.slope.amax(-1, keepdim=True)
        if not positive:
            largest = torch.maximum(largest, -point.slope.amin(-1, keepdim=True))
        gap = gap_of_slope(signals.energy, signals.correlation, point.codes, point.slope, largest)
        answer.store(signals, point.codes, gap, done)
        # What is not a number goes on, and is noticed at the end.
        going = (~(gap <= signals.floor))[:, 0].nonzero()[:, 0]
        if not len(going) or done + _CHECK_EVERY > max_steps:
            return
        if len(going) < len(gap):
            signals, point = signals.at(going), Point(*(values.index_select(0, going) for values in point))
        point = descend(point, atoms.bend, _CHECK_EVERY, atoms.least, positive)
