"""After training: the dictionary that fits the codes it will be used with, by least squares."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, StandardisedRows, Standardiser, SubsetRows
from softspike.generator import UnitNormDictionary
from softspike.methods import Plan
from softspike.model import VariationalCoder
from softspike.refit import Merged, Refit, Shared, Sheared

__all__ = ["Refitted", "refit_dictionary"]

_FEW, _EACH = 32, 128  # rows for each atom, so that it is used so many times the mean count: at first, in the end
_FEWEST_ROWS, _MOST_ROWS, _MOST_NUMBERS = 2**12, 2**16, 2**26  # of a step, where there are so many
_WIDEST = 4096  # atoms; with more, d³ operations would take longer than finding the codes
_JUDGES, _SURELY = 2048, 2.0  # rows that say whether a step helps, and standard errors by which all of it must
_LONGER = 1.9  # times the step of least squares: codes have made up for half of what is wrong with atoms
_PATIENCE, _GAIN, _NOTHING = 5, 0.97, 1e-8  # steps that leave not 3 % less in all are the last


class Refitted(NamedTuple):
    """What was done."""

    n_steps: int
    origin: Tensor  # (D,) from which codes are to be taken now: those of x − origin


@torch.no_grad()
def refit_dictionary(
    coder: Coder, plan: Plan, learning: Rows, aside: Tensor, between: Callable[[str], None] = lambda stage: None
) -> Refitted:
    """Move the atoms, and the origin of signed codes, to where `Refit` finds them, again and again.

    Training fits A to what the posterior expects, from one pass of the encoder; codes are corrected after that, and fit
    better. And the mean that was taken out of the rows is only nearly where the code should be 0. Steps go on until
    five in a row do not leave 3 % less of the rows aside, which training never saw, at the same mean count; the best of
    them stays. Then atoms that are in a wrong place, from where no step of least squares leads away, start anew: those
    with a part of a `Shared` one, else those that no row uses and `Sheared` ones, else `Merged` ones. That is kept
    where it surely leaves less after such steps, by two standard errors, as must all of it. A few rows for each atom
    are enough for that; the last steps are with more. Only where codes are corrected, on unit-norm atoms, and not on
    more than 4,096 of them: other coders are left as they are. `between` is told the step before each of its parts;
    what it raises leaves the coder as it is then.
    """
    n_steps, aside = plan.dictionary_refits, aside[:_JUDGES]
    nothing = Refitted(0, torch.zeros_like(aside[0]))
    if n_steps == 0 or not (isinstance(coder, VariationalCoder) and isinstance(coder.generator, UnitNormDictionary)):
        return nothing
    if coder.correction is None or coder.generator.n_components > _WIDEST:
        return nothing
    origin = Standardiser.identity(aside.shape[1]).to(aside.device)
    few, more = (StandardisedRows(_some(learning, plan, each), origin) for each in (_FEW, _EACH))
    fit = _Fit(coder, coder.generator, origin, few, aside, plan, between)
    first, before = fit.state(), fit.errors()
    errors = fit.converged(before)
    while fit.n_left and (moved := fit.anew(errors)) is not None:
        errors = moved
    if len(more) > len(few):
        fit.rows = more
        errors = fit.steps(errors, 1.0, 1)
    if not _surely_less(errors, before):
        fit.restore(first)
        return nothing
    return Refitted(fit.n_made, origin.mean)


@dataclass
class _Fit:
    """What the steps of one fit share."""

    coder: VariationalCoder
    generator: UnitNormDictionary
    origin: Standardiser
    rows: Rows  # seen from there
    aside: Tensor
    plan: Plan
    between: Callable[[str], None]
    n_made: int = 0

    @property
    def n_left(self) -> int:
        return self.plan.dictionary_refits - self.n_made

    def converged(self, errors: Tensor) -> Tensor:
        """The errors of rows aside after steps until they help no more, with the atoms that leave least: long ones,
        which come out of flat places sooner, then plain ones, which end where codes are right at once."""
        return self.steps(self.steps(errors, _LONGER, _PATIENCE), 1.0, 1)

    def steps(self, errors: Tensor, length: float, patience: int) -> Tensor:
        """The least errors of steps that are so many times those of least squares, up to so many that do not help."""
        best, state, waited, bar = errors, self.state(), 0, errors.mean()
        while self.n_left and waited < patience and best.mean() > self.nothing:
            refit = self.refit()
            self.origin.mean.add_(refit.origin, alpha=length)
            errors = self.moved_to(torch.lerp(self.generator.weight, refit.atoms, length))
            if errors.mean() < best.mean():
                best, state = errors, self.state()
            waited, bar = (0, errors.mean()) if errors.mean() < _GAIN * bar else (waited + 1, bar)
        self.restore(state)
        return best

    def anew(self, errors: Tensor) -> Tensor | None:
        """The errors after atoms in a wrong place have started anew; None where that surely helps nowhere."""
        refit, x = self.refit(), self.rows.take(torch.arange(min(len(self.rows), _FEWEST_ROWS)))
        codes, anew = self.coder.code(x), refit.with_unused_anew()
        shared = [partial(_without, self.generator.weight, one) for one in Shared.of(codes)]
        if (now := self.kept(shared, errors)) is not None:
            return now
        sheared = Sheared.of(codes)
        some = [partial(_unsheared, anew, sheared[:n]) for n in _halves(len(sheared), refit.n_unused > 0)]
        if (now := self.kept(some, errors)) is not None:
            return now
        merged = Merged.of(codes, x - self.generator(codes))
        return self.kept([partial(_split, self.generator.weight, merged[:n]) for n in _halves(len(merged))], errors)

    def kept(self, ways: Sequence[Callable[[], Tensor]], errors: Tensor) -> Tensor | None:
        """The errors with the first of these atoms that surely leaves less after steps from there; None where none."""
        state = self.state()
        for way in ways:
            if not self.n_left:
                break
            now = self.converged(self.moved_to(way()))
            if _surely_less(now, errors):
                return now
            self.restore(state)
        return None

    @property
    def nothing(self) -> Tensor:
        """What rounding leaves."""
        return _NOTHING * self.aside.square().sum(-1).mean()

    def refit(self) -> Refit:
        self.n_made += 1
        n_steps = self.plan.dictionary_refits
        stage = f"fitting the dictionary to its codes, step {self.n_made} of at most {n_steps}"
        return Refit.of(self.generator, self.coder.code, self.rows, self.plan.positive, partial(self.between, stage))

    def moved_to(self, atoms: Tensor) -> Tensor:
        """The errors with the atoms there."""
        self.generator.weight.copy_(atoms)
        self.generator.constrain()
        return self.errors()

    def errors(self) -> Tensor:
        """‖x − x̂‖² of each row aside, (n,), at the mean count that was asked for."""
        x = self.origin(self.aside)
        self.coder.set_count(x, self.plan.target_active)
        return (x - self.generator(self.coder.code(x))).square().sum(-1).double()

    def state(self) -> "_State":
        coder = {name: value.clone() for name, value in self.coder.state_dict().items()}
        return _State(coder, self.origin.mean.clone())

    def restore(self, state: "_State") -> None:
        self.coder.load_state_dict(state.coder)
        self.origin.mean.copy_(state.origin)


class _State(NamedTuple):
    coder: dict[str, Tensor]
    origin: Tensor


def _without(atoms: Tensor, shared: Shared) -> Tensor:
    """aⱼ + vⱼ·s for each atom that has a part of s."""
    return atoms + atoms[:, shared.atom, None] * shared.parts


def _unsheared(atoms: Tensor, sheared: list[Sheared]) -> Tensor:
    """b + c·s₁ for each b; the rest as it is."""
    moved = atoms.clone()
    for one in sheared:
        moved[:, one.atom] += one.ratio * atoms[:, one.companion]
    return moved


def _split(atoms: Tensor, merged: list[Merged]) -> Tensor:
    """a + δv for a, a − δv for the spare atom; the rest as it is."""
    moved = atoms.clone()
    for one in merged:
        moved[:, one.atom], moved[:, one.spare] = atoms[:, one.atom] + one.shift, atoms[:, one.atom] - one.shift
    return moved


def _halves(n: int, none: bool = False) -> list[int]:
    """n, n//2, … 1; and 0 where there is something to do without any."""
    return [n >> k for k in range(n.bit_length())] + [0] * none


def _surely_less(errors: Tensor, before: Tensor) -> bool:
    """Whether their mean is, by two standard errors of the differences."""
    gains = before - errors
    return bool(gains.mean() > _SURELY * gains.std() / len(gains) ** 0.5)


def _some(rows: Rows, plan: Plan, each: int) -> Rows:
    """Evenly spaced, no more than were drawn in training, and no more than a step has time for."""
    enough = min(max(each * plan.n_components, _FEWEST_ROWS), _MOST_ROWS)
    fitting = _MOST_NUMBERS // max(plan.n_components, plan.n_features)
    return SubsetRows.spread(rows, max(min(plan.n_steps * plan.batch_size, enough, fitting), 1))
