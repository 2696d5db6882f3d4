"""After training: the dictionary that fits the codes it will be used with, by least squares."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, SubsetRows
from softspike.data.chunks import chunks
from softspike.generator import UnitNormDictionary, atoms_of
from softspike.methods import Plan
from softspike.model import VariationalCoder

__all__ = ["refit_dictionary", "refitted_atoms"]

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
    """Move the atoms to where `refitted_atoms` finds them, again and again; the number of steps that were kept.

    Training fits A to what the posterior expects, from one pass of the encoder; codes are corrected after that, and fit
    better. A step is kept where it surely leaves less of the rows aside, which training never saw, at the same mean
    count: by two standard errors. One that gains less than half a per cent is the last. Only where codes are corrected,
    on unit-norm atoms, and not on more than 4,096 of them: other coders are left as they are. `between` is told the
    step before each of its parts; what it raises leaves the coder as it is then.
    """
    n_steps, aside = plan.dictionary_refits, aside[:_JUDGES]
    if n_steps == 0 or not (isinstance(coder, VariationalCoder) and isinstance(coder.generator, UnitNormDictionary)):
        return 0
    if coder.correction is None or coder.generator.n_components > _WIDEST:
        return 0
    rows, errors = _some(learning, plan), _errors(coder, aside, plan.target_active)
    for kept in range(n_steps):
        before = {name: value.clone() for name, value in coder.state_dict().items()}
        told = partial(between, f"fitting the dictionary to its codes, step {kept + 1} of at most {n_steps}")
        coder.generator.weight.copy_(refitted_atoms(coder, rows, told))
        coder.generator.constrain()
        last, errors = errors, _errors(coder, aside, plan.target_active)
        gains = last - errors
        if not gains.mean() > _SURELY * gains.std() / len(gains) ** 0.5:
            coder.load_state_dict(before)
            return kept
        if errors.mean() > _ENOUGH * last.mean():
            return kept + 1
    return n_steps


@torch.no_grad()
def refitted_atoms(coder: VariationalCoder, rows: Rows, told: Callable[[], None] = lambda: None) -> Tensor:
    """A + RᵀZ(ZᵀZ + κI)⁻¹, (D, d): least squares of the rows X on their codes Z, where R = X − ZAᵀ.

    κ is the mean square of an active coefficient, as if each atom had been used once more, as it is: one that is never
    used stays where it is. `told` is called before each few thousand rows.
    """
    atoms = atoms_of(coder.generator)
    gram = atoms.new_zeros((atoms.shape[1],) * 2, dtype=torch.float64)
    match, n_active = torch.zeros_like(atoms, dtype=torch.float64), 0
    for _, x in chunks(rows, _AT_A_TIME):
        told()
        z = coder.code(x)
        gram += (z.T @ z).double()
        match += ((x - coder.generator(z)).T @ z).double()
        n_active += int((z != 0).sum())
    gram.diagonal().add_(gram.diagonal().sum() / n_active if n_active else 1.0)
    return atoms + torch.linalg.solve_ex(gram, match, left=False).result.to(atoms)


def _some(rows: Rows, plan: Plan) -> Rows:
    """Evenly spaced, no more than were drawn in training, and no more than a step has time for."""
    enough = min(max(_EACH * plan.n_components, _FEWEST_ROWS), _MOST_ROWS)
    fitting = _MOST_NUMBERS // max(plan.n_components, plan.n_features)
    return SubsetRows.spread(rows, max(min(plan.n_steps * plan.batch_size, enough, fitting), 1))


def _errors(coder: Coder, x: Tensor, mean_active: float) -> Tensor:
    """‖x − x̂‖² of each row, (n,), at that mean count."""
    coder.set_count(x, mean_active)
    return (x - coder.generator(coder.code(x))).square().sum(-1).double()
