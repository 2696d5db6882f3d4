"""After training: the last fit of the dictionary, and the rows that cuts are placed on."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, SubsetRows
from softspike.fitting.aside import Kept, balancing_weights, energies, none_kept, same_kept
from softspike.fitting.dictionary import refit_dictionary
from softspike.fitting.fitted import Fitted
from softspike.methods import Plan
from softspike.notice import notice

__all__ = ["Aside", "refit_and_set_aside", "tell_if_seen"]

_ENERGIES = 2**16  # rows, at most, that the kept ones are balanced against
_REPEATED = 0.5  # a share of repeated rows from which the count on unseen ones suffers


class Aside(NamedTuple):
    """Rows that training never saw, as a coder sees them, and what each stands for: what its cut is placed on."""

    x: Tensor  # (n, D)
    weights: Tensor  # (n,)
    repeated: float  # the share of them that training saw all the same, in rows that are equal to them


def refit_and_set_aside(
    kept: Kept, learning: Rows, fitted: Fitted, plan: Plan, between: Callable[[str], None]
) -> Aside:
    """Refit the dictionary of a coder, where it has one, move its standardiser's mean to the new origin, and give the
    rows to calibrate it on. `between` is told what comes next, and may raise to stop there. `learning` may be seen
    through the standardiser that is moved, which is why it is moved last."""
    coder, standardiser = fitted.coder, fitted.standardiser
    own, others = energies(kept.rows), energies(SubsetRows.spread(learning, _ENERGIES))
    repeated = float(torch.isin(own, others).double().mean())  # rows of equal energy, to the last bit, are equal
    aside = kept.rows.take(torch.arange(len(kept.rows))).to(standardiser.mean.device)
    origin = torch.zeros_like(aside[0])
    if kept.unseen:  # else nothing could say when to stop
        origin = refit_dictionary(coder, plan, learning, aside, between).origin
    between("calibrating")
    standardiser.mean = standardiser.mean + standardiser.scale * origin  # in place it would move checkpoints as well
    return Aside(aside - origin, balancing_weights(own, others), repeated)


def tell_if_seen(coder: Coder, kept: Kept, learning: Rows, aside: Aside) -> None:
    """Warn where a count was placed on the rows that were learned from."""
    if coder.counts_by_rows and not kept.unseen:
        notice(none_kept(learning))
    elif coder.counts_by_rows and aside.repeated > _REPEATED:
        notice(same_kept(aside.repeated))
