"""How a recovered dictionary is shown: every true atom against every learned one."""

import torch
from torch import Tensor

from softspike.metric.recovery import absolute_cosine, match

__all__ = ["MOST_ATOMS", "matched_cosines"]

MOST_ATOMS = 128


def matched_cosines(atoms: Tensor, truth: Tensor, activity: Tensor) -> Tensor:
    """|cos| of true atoms (rows) with the partners of the same atoms (columns), (k, k): recovery is a diagonal of ones.

    True atoms (D, m) stand in the order of how often they are active, activity (m,), the most common first; of more
    than 128 that many at even distances in this order. Those without a partner among the atoms (D, d) are left out.
    """
    similarity = absolute_cosine(atoms, truth)
    pairs = match(similarity)
    order = activity[pairs.truth].argsort(descending=True, stable=True)
    shown = order[torch.linspace(0, len(order) - 1, min(MOST_ATOMS, len(order))).round().long()]
    return similarity[pairs.found[shown]].T[pairs.truth[shown]]
