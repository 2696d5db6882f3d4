"""After training: the dictionary that fits the codes it will be used with, by least squares."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, SubsetRows
from softspike.generator import UnitNormDictionary
from softspike.methods import Plan
from softspike.model import VariationalCoder
from softspike.refit import Refit
from softspike.sheared import Sheared

__all__ = ["refit_dictionary"]

_EACH = 128  # rows for each atom, so that it is used 128 times the mean count
_FEWEST_ROWS, _MOST_ROWS, _MOST_NUMBERS = 2**12, 2**16, 2**26  # of a step, where there are so many
_WIDEST = 4096  # atoms; with more, d³ operations would take longer than finding the codes
_JUDGES, _SURELY = 2048, 2.0  # rows that say whether a step helps, and standard errors by which all of it must
_LONGER = 1.9  # times the step of least squares: codes have made up for half of what is wrong with atoms
_PATIENCE, _GAIN, _NOTHING = 5, 0.99, 1e-8  # steps that leave no hundredth less in all are the last


@torch.no_grad()
def refit_dictionary(
    coder: Coder, plan: Plan, learning: Rows, aside: Tensor, between: Callable[[str], None] = lambda stage: None
) -> int:
    """Move the atoms to where `Refit` finds them, again and again; the number of steps that were made.

    Training fits A to what the posterior expects, from one pass of the encoder; codes are corrected after that, and fit
    better. Steps go on until five in a row do not leave a hundredth less of the rows aside, which training never saw,
    at the same mean count; the best of them stays. Then atoms that are in a wrong place, from where no step of least
    squares leads away, start anew: those that no row uses, and `Sheared` ones. That is kept where it surely leaves less
    after as many steps: by two standard errors, as is all of it. Only where codes are corrected, on unit-norm atoms, and not
    on more than 4,096 of them: other coders are left as they are. `between` is told the step before each of its parts;
    what it raises leaves the coder as it is then.
    """
    n_steps, aside = plan.dictionary_refits, aside[:_JUDGES]
    if n_steps == 0 or not (isinstance(coder, VariationalCoder) and isinstance(coder.generator, UnitNormDictionary)):
        return 0
    if coder.correction is None or coder.generator.n_components > _WIDEST:
        return 0
    fit = _Fit(coder, coder.generator, _some(learning, plan), aside, plan, between)
    first, before = fit.state(), fit.errors()
    errors = fit.converged(before)
    while fit.n_left and (moved := fit.anew(errors)) is not None:
        errors = moved
    if not _surely_less(errors, before):
        coder.load_state_dict(first)
        return 0
    return fit.n_made


@dataclass
class _Fit:
    """What the steps of one fit share."""

    coder: VariationalCoder
    generator: UnitNormDictionary
    rows: Rows
    aside: Tensor
    plan: Plan
    between: Callable[[str], None]
    n_made: int = 0

    @property
    def n_left(self) -> int:
        return self.plan.dictionary_refits - self.n_made

    def converged(self, errors: Tensor) -> Tensor:
        """The errors of rows aside after steps until they help no more, with the atoms that leave least."""
        best, state, waited, bar = errors, self.state(), 0, errors.mean()
        while self.n_left and waited < _PATIENCE and best.mean() > self.nothing:
            atoms, refit = self.generator.weight.clone(), self.refit()
            errors = self.moved_to(torch.lerp(atoms, refit.atoms, _LONGER))
            if errors.mean() < best.mean():
                best, state = errors, self.state()
            waited, bar = (0, errors.mean()) if errors.mean() < _GAIN * bar else (waited + 1, bar)
        self.coder.load_state_dict(state)
        return best

    def anew(self, errors: Tensor) -> Tensor | None:
        """The errors after atoms in a wrong place have started anew: all of them, else the surest half, and so on;
        None where nothing of that surely helps."""
        refit, state = self.refit(), self.state()
        sheared = Sheared.of(self.coder.code(self.rows.take(torch.arange(min(len(self.rows), _FEWEST_ROWS)))))
        while self.n_left and (sheared or refit.n_unused):
            now = self.converged(self.moved_to(_unsheared(refit.with_unused_anew(), sheared)))
            if _surely_less(now, errors):
                return now
            self.coder.load_state_dict(state)
            if len(sheared) < 2:
                break
            sheared = sheared[: len(sheared) // 2]
        return None

    @property
    def nothing(self) -> Tensor:
        """What rounding leaves."""
        return _NOTHING * self.aside.square().sum(-1).mean()

    def refit(self) -> Refit:
        self.n_made += 1
        n_steps = self.plan.dictionary_refits
        stage = f"fitting the dictionary to its codes, step {self.n_made} of at most {n_steps}"
        return Refit.of(self.coder, self.rows, partial(self.between, stage))

    def moved_to(self, atoms: Tensor) -> Tensor:
        """The errors with the atoms there."""
        self.generator.weight.copy_(atoms)
        self.generator.constrain()
        return self.errors()

    def errors(self) -> Tensor:
        """‖x − x̂‖² of each row aside, (n,), at the mean count that was asked for."""
        self.coder.set_count(self.aside, self.plan.target_active)
        rebuilt = self.generator(self.coder.code(self.aside))
        return (self.aside - rebuilt).square().sum(-1).double()

    def state(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.coder.state_dict().items()}


def _unsheared(atoms: Tensor, sheared: list[Sheared]) -> Tensor:
    """b + c·s₁ for each b; the rest as it is."""
    moved = atoms.clone()
    for one in sheared:
        moved[:, one.atom] += one.ratio * atoms[:, one.companion]
    return moved


def _surely_less(errors: Tensor, before: Tensor) -> bool:
    """Whether their mean is, by two standard errors of the differences."""
    gains = before - errors
    return bool(gains.mean() > _SURELY * gains.std() / len(gains) ** 0.5)


def _some(rows: Rows, plan: Plan) -> Rows:
    """Evenly spaced, no more than were drawn in training, and no more than a step has time for."""
    enough = min(max(_EACH * plan.n_components, _FEWEST_ROWS), _MOST_ROWS)
    fitting = _MOST_NUMBERS // max(plan.n_components, plan.n_features)
    return SubsetRows.spread(rows, max(min(plan.n_steps * plan.batch_size, enough, fitting), 1))
