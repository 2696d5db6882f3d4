"""After training: the dictionary that fits the codes it will be used with, by least squares."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, SubsetRows
from softspike.data.chunks import chunks
from softspike.generator import UnitNormDictionary, atoms_of
from softspike.methods import Plan
from softspike.model import VariationalCoder

__all__ = ["Refit", "refit_dictionary"]

_EACH = 128  # rows for each atom, so that it is used 128 times the mean count
_FEWEST_ROWS, _MOST_ROWS, _MOST_NUMBERS = 2**14, 2**16, 2**26  # of a step, where there are so many
_WIDEST = 4096  # atoms; with more, d³ operations would take longer than finding the codes
_JUDGES, _SURELY = 2048, 2.0  # rows that say whether a step helps, and standard errors by which it must
_ENOUGH = 0.995  # of the error before: a step that leaves more is the last
_AT_A_TIME = 4096


@torch.no_grad()
def refit_dictionary(
    coder: Coder, plan: Plan, learning: Rows, aside: Tensor, between: Callable[[str], None] = lambda stage: None
) -> int:
    """Move the atoms to where `Refit` finds them, again and again; the number of steps that were kept.

    Training fits A to what the posterior expects, from one pass of the encoder; codes are corrected after that, and fit
    better. A step is kept where it surely leaves less of the rows aside, which training never saw, at the same mean
    count: by two standard errors. One that gains less than half a per cent is the last. Atoms that no row uses then
    start anew, and steps follow as before; all of that is kept where it surely leaves less in the end. Only where codes
    are corrected, on unit-norm atoms, and not on more than 4,096 of them: other coders are left as they are. `between`
    is told the step before each of its parts; what it raises leaves the coder as it is then.
    """
    n_steps, aside = plan.dictionary_refits, aside[:_JUDGES]
    if n_steps == 0 or not (isinstance(coder, VariationalCoder) and isinstance(coder.generator, UnitNormDictionary)):
        return 0
    if coder.correction is None or coder.generator.n_components > _WIDEST:
        return 0
    fit = _Fit(coder, coder.generator, _some(learning, plan), aside, plan, between)
    kept, errors, refused = fit.steps(n_steps, fit.errors())
    while kept < n_steps and (refit := refused or fit.refit(kept, n_steps)).n_unused:
        before = fit.state()
        more, now, refused = fit.steps(n_steps, fit.moved_to(refit.with_unused_anew()), kept + 1)
        if not _surely_less(now, errors):
            coder.load_state_dict(before)
            break
        kept, errors = more, now
    return kept


class _Fit(NamedTuple):
    """What the steps of one fit share."""

    coder: VariationalCoder
    generator: UnitNormDictionary
    rows: Rows
    aside: Tensor
    plan: Plan
    between: Callable[[str], None]

    def steps(self, n_steps: int, errors: Tensor, kept: int = 0) -> tuple[int, Tensor, "Refit | None"]:
        """Steps until one does not help, or helps little: how many there are now, the errors of rows aside, and the
        step that did not help, which is still what the codes ask for."""
        while kept < n_steps:
            before, refit = self.state(), self.refit(kept, n_steps)
            last, errors = errors, self.moved_to(refit.atoms)
            if not _surely_less(errors, last):
                self.coder.load_state_dict(before)
                return kept, last, refit
            kept += 1
            if errors.mean() > _ENOUGH * last.mean():
                break
        return kept, errors, None

    def refit(self, kept: int, n_steps: int) -> "Refit":
        stage = f"fitting the dictionary to its codes, step {kept + 1} of at most {n_steps}"
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


def _surely_less(errors: Tensor, before: Tensor) -> bool:
    """Whether their mean is, by two standard errors of the differences."""
    gains = before - errors
    return bool(gains.mean() > _SURELY * gains.std() / len(gains) ** 0.5)


class Refit(NamedTuple):
    """One step of least squares, from codes as they are."""

    atoms: Tensor  # (D, d)
    unused: Tensor  # (d,) whether no row uses an atom
    longest: Tensor  # (≤ d, D), what is left of the rows of which most is left, the longest first

    @classmethod
    def of(cls, coder: VariationalCoder, rows: Rows, told: Callable[[], None] = lambda: None) -> "Refit":
        """A + RᵀZ(ZᵀZ + κI)⁻¹: least squares of the rows X on their codes Z, where R = X − ZAᵀ.

        κ is the mean square of an active coefficient, as if each atom had been used once more, as it is: one that is
        never used stays where it is. `told` is called before each few thousand rows.
        """
        atoms = atoms_of(coder.generator)
        gram = atoms.new_zeros((atoms.shape[1],) * 2, dtype=torch.float64)
        match, n_active, longest = torch.zeros_like(atoms, dtype=torch.float64), 0, atoms.new_zeros(0, atoms.shape[0])
        for _, x in chunks(rows, _AT_A_TIME):
            told()
            z = coder.code(x)
            left = x - coder.generator(z)
            gram += (z.T @ z).double()
            match += (left.T @ z).double()
            n_active += int((z != 0).sum())
            longest = _longest(torch.cat([longest, left]), atoms.shape[1])
        unused = gram.diagonal() == 0
        gram.diagonal().add_(gram.diagonal().sum() / n_active if n_active else 1.0)
        moved = torch.linalg.solve_ex(gram, match, left=False).result.to(atoms)
        return cls(atoms + moved, unused, longest)

    @property
    def n_unused(self) -> int:
        return int(self.unused.sum())

    def with_unused_anew(self) -> Tensor:
        """The atoms, with those that no row uses along the longest rows of R, one each: what no atom explains yet."""
        numbers = self.unused.nonzero()[: len(self.longest), 0]
        atoms = self.atoms.clone()
        atoms[:, numbers] = torch.nn.functional.normalize(self.longest[: len(numbers)].T, dim=0)
        return atoms


def _longest(x: Tensor, count: int) -> Tensor:
    """At most `count` rows, the longest first; none that is zero, which has no direction."""
    lengths = x.norm(dim=-1)
    order = lengths.argsort(descending=True)[:count]
    return x[order[lengths[order] > 0]]


def _some(rows: Rows, plan: Plan) -> Rows:
    """Evenly spaced, no more than were drawn in training, and no more than a step has time for."""
    enough = min(max(_EACH * plan.n_components, _FEWEST_ROWS), _MOST_ROWS)
    fitting = _MOST_NUMBERS // max(plan.n_components, plan.n_features)
    return SubsetRows.spread(rows, max(min(plan.n_steps * plan.batch_size, enough, fitting), 1))
