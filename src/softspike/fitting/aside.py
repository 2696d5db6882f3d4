"""Rows that training does not see, to place cuts and judge dictionaries on: which they are, and what they stand for."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.data import Rows, SubsetRows
from softspike.data.chunks import chunks

__all__ = ["Kept", "balancing_weights", "energies", "none_kept", "same_kept", "split"]

# Enough rows to place the cut within about a per cent, few enough to hold their scores in memory.
_FEWEST_ROWS, _MOST_ROWS, _MOST_NUMBERS = 50, 8192, 2**24


class Kept(NamedTuple):
    """Rows to calibrate on."""

    rows: Rows
    unseen: bool  # whether they are kept from training


def split(rows: Rows, n_components: int) -> tuple[Rows, Kept]:
    """Rows to learn from, and rows kept aside to calibrate the sparsity on.

    Codes of rows that the dictionary was fitted to are a few per cent sparser than those of unseen ones, so the cut is
    placed on rows training never saw: a tenth, at most 8192, but of small sets up to a quarter, because a few hundred
    rows place it badly. Tiny sets cannot spare any and serve as both. The same rows for every seed, so that starts can
    be compared.
    """
    most = max(_MOST_NUMBERS // max(n_components, rows.n_features), 1)
    n = min(max(len(rows) // 10, min(len(rows) // 4, 1000)), _MOST_ROWS, most)
    if n < _FEWEST_ROWS:
        return rows, Kept(SubsetRows(rows, torch.arange(min(len(rows), most))), unseen=False)
    dtype = torch.int32 if len(rows) < 2**31 else torch.int64
    shuffled = torch.randperm(len(rows), generator=Generator().manual_seed(0), dtype=dtype)
    return SubsetRows(rows, shuffled[n:]), Kept(SubsetRows(rows, shuffled[:n]), unseen=True)


def balancing_weights(aside: Tensor, population: Tensor) -> Tensor:
    """Weights (n,) ≥ 0 of sum 1 that give the rows kept aside the population's mean of log ‖x‖², ‖x‖ and ‖x‖².

    Both are given by the energies ‖x‖²/D of their rows. The count of a row depends mostly on its energy, so this takes
    most of the sampling noise out of a mean count: w = F(FᵀF)⁻¹f̄ with F the features of the rows aside and f̄ the
    population's mean feature (a regression estimator). Where energies vary by orders of magnitude the means of a few
    huge rows would be made up for by weights of both signs: then the first two of these features alone are balanced, or
    the first, or none. No energy counts as more than four times the largest of the rows aside.
    """

    def features(energy: Tensor) -> Tensor:
        return torch.stack([torch.ones_like(energy), torch.log(energy + 1e-2), energy.sqrt(), energy], dim=-1)

    known, wanted = features(aside), features(population.clamp_max(4 * aside.max())).mean(0)
    for n in range(known.shape[1], 1, -1):
        weights = torch.linalg.pinv(known[:, :n]).T @ wanted[:n]
        if bool((weights >= 0).all()):
            return weights
    return torch.full_like(aside, 1 / len(aside))


def energies(rows: Rows) -> Tensor:
    """‖x‖²/D of each row, a chunk at a time: wide rows by the thousand would not fit in memory."""
    return torch.cat([chunk.x.double().square().mean(-1) for chunk in chunks(rows)])


def none_kept(rows: Rows) -> str:
    """What one must know where all of these rows were trained on."""
    why, cure = f"of {rows.n_features} numbers are too large", "give narrower data"
    if len(rows) < 4 * _FEWEST_ROWS:
        cure = f"give {4 * _FEWEST_ROWS} or more, some thousands to meet it within a few per cent"
        why = "are too few"
    return (
        f"{len(rows)} rows {why} to keep any aside: the number of active components was set on those that were trained "
        f"on and may be tens of per cent higher on unseen ones; {cure}"
    )


def same_kept(repeated: float) -> str:
    """What one must know where this share of the rows kept aside was trained on all the same."""
    return (
        f"{repeated:.0%} of the rows kept aside have equals among those that were trained on: the number of active "
        "components may be tens of per cent higher on unseen rows; give each row once"
    )
