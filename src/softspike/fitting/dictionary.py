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

_ROWS_PER_ATOM, _ROWS_PER_ATOM_AT_LAST = 32, 128  # each atom is then used this often times the mean count
_FEWEST_ROWS, _MOST_ROWS, _MOST_NUMBERS = 2**12, 2**16, 2**26  # of a step, where there are so many
_MOST_ATOMS = 4096  # with more, the d³ operations of a step would take longer than finding the codes
_JUDGING_ROWS = 2048  # rows aside, at most, by which a step is judged
_SURE = 2.0  # standard errors that a restart, and the whole fit, must gain by, or it is undone
_OVERSTEP = 1.9  # codes make up for half of what is wrong with an atom, so a plain step goes half the way
_PATIENCE, _GAIN = 5, 0.97  # steps without a gain of 3 % in all, after which no more are taken
_ROUNDING = 1e-8  # of the energy; where no more than that is left there is nothing to gain


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
    better. And the mean that was taken out of the rows is only nearly where the code should be 0. So:

    1. Steps of least squares, over-long ones first and plain ones in the end, until five in a row gain less than 3 % on
       the rows aside, which training never saw, at the same mean count. The best of them stays.
    2. Atoms in a wrong place, from which no such step leads away, start anew, and steps follow: those with a part of a
       `Shared` one; else those that no row uses and `Sheared` ones; else `Merged` ones. A restart is kept where it
       gains by two standard errors, and then 2 begins again.
    3. One more run of plain steps, with more rows: few for each atom were enough until then.
    4. All of it is undone where it does not gain by two standard errors.

    Only coders whose codes are corrected, on at most 4,096 unit-norm atoms, are refitted. `between` is told the stage
    before each of its parts; what it raises leaves the coder as it is then.
    """
    aside = aside[:_JUDGING_ROWS]
    unchanged = Refitted(0, torch.zeros_like(aside[0]))
    if not (isinstance(coder, VariationalCoder) and isinstance(coder.generator, UnitNormDictionary)):
        return unchanged
    if plan.dictionary_refits == 0 or coder.correction is None or coder.generator.n_components > _MOST_ATOMS:
        return unchanged
    origin = Standardiser.identity(aside.shape[1]).to(aside.device)
    few, more = (
        StandardisedRows(_some(learning, plan, each), origin) for each in (_ROWS_PER_ATOM, _ROWS_PER_ATOM_AT_LAST)
    )
    fit = _Fit(coder, coder.generator, origin, few, aside, plan, between)
    first, before = fit.state(), fit.errors()
    errors = fit.converged(before)
    while fit.n_left and (mended := fit.restarted(errors)) is not None:
        errors = mended
    if len(more) > len(few):
        fit.rows = more
        errors = fit.steps(errors, 1.0, 1)
    if not _surely_less(errors, before):
        fit.restore(first)
        return unchanged
    return Refitted(fit.n_made, origin.mean)


@dataclass
class _Fit:
    """What the steps of one fit share. Errors are ‖x − x̂‖² of each row aside, (n,)."""

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
        """The errors after steps until they gain no more: over-long ones, which leave flat places sooner, then plain
        ones, which end where codes are right at once. The atoms of the least errors stay."""
        return self.steps(self.steps(errors, _OVERSTEP, _PATIENCE), 1.0, 1)

    def steps(self, errors: Tensor, length: float, patience: int) -> Tensor:
        """The least errors of steps `length` times as long as those of least squares, until `patience` in a row do not
        gain."""
        best, state, waited, bar = errors, self.state(), 0, errors.mean()
        while self.n_left and waited < patience and best.mean() > self.rounding:
            refit = self.refit()
            self.origin.mean.add_(refit.origin, alpha=length)
            errors = self.moved_to(torch.lerp(self.generator.weight, refit.atoms, length))
            if errors.mean() < best.mean():
                best, state = errors, self.state()
            waited, bar = (0, errors.mean()) if errors.mean() < _GAIN * bar else (waited + 1, bar)
        self.restore(state)
        return best

    def restarted(self, errors: Tensor) -> Tensor | None:
        """The errors after atoms in a wrong place have started anew; None where that surely helps nowhere."""
        refit, x = self.refit(), self.rows.take(torch.arange(min(len(self.rows), _FEWEST_ROWS)))
        codes, atoms, unused_anew = self.coder.code(x), self.generator.weight, refit.with_unused_anew()
        mended = self.first_that_helps([partial(one.mended, atoms) for one in Shared.of(codes)], errors)
        if mended is not None:
            return mended
        sheared = Sheared.of(codes)
        counts = _halves(len(sheared)) + [0] * (refit.n_unused > 0)
        mended = self.first_that_helps([partial(Sheared.mended, unused_anew, sheared[:n]) for n in counts], errors)
        if mended is not None:
            return mended
        merged = Merged.of(codes, x - self.generator(codes))
        return self.first_that_helps([partial(Merged.mended, atoms, merged[:n]) for n in _halves(len(merged))], errors)

    def first_that_helps(self, ways: Sequence[Callable[[], Tensor]], errors: Tensor) -> Tensor | None:
        """The errors with the first of these atoms that surely leaves less after steps from there; None where none."""
        state = self.state()
        for way in ways:
            if not self.n_left:
                break
            found = self.converged(self.moved_to(way()))
            if _surely_less(found, errors):
                return found
            self.restore(state)
        return None

    @property
    def rounding(self) -> Tensor:
        """What rounding leaves."""
        return _ROUNDING * self.aside.square().sum(-1).mean()

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


def _halves(n: int) -> list[int]:
    """n, n//2, … 1."""
    return [n >> k for k in range(n.bit_length())]


def _surely_less(errors: Tensor, before: Tensor) -> bool:
    """Whether their mean is, by two standard errors of the differences."""
    gains = before - errors
    return bool(gains.mean() > _SURE * gains.std() / len(gains) ** 0.5)


def _some(rows: Rows, plan: Plan, per_atom: int) -> Rows:
    """Evenly spaced, no more than were drawn in training, and no more than a step has time for."""
    enough = min(max(per_atom * plan.n_components, _FEWEST_ROWS), _MOST_ROWS)
    fitting = _MOST_NUMBERS // max(plan.n_components, plan.n_features)
    return SubsetRows.spread(rows, max(min(plan.n_steps * plan.batch_size, enough, fitting), 1))
