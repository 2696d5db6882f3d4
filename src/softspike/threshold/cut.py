"""The cut that leaves a given number of components active."""

import math

import torch
from torch import Tensor

__all__ = ["level_for_count", "nearest_level_for_count"]

_SAMPLE = 2**14


def level_for_count(scores: Tensor, mean_count: float, weights: Tensor | None = None) -> Tensor:
    """The cut c at which Σᵦ wᵦ·#{i : scoreᵦᵢ > c} = mean_count; scores (B, d), weights (B,) of sum 1, equal if None.

    It lies midway between the last score above it and the first below, or half as high again as the largest where none
    is to be above it: on a score, rounding would decide.
    """
    if weights is None:
        weights = torch.full((len(scores),), 1 / len(scores), dtype=torch.float64, device=scores.device)
    scores, weights = scores[weights > 0], weights[weights > 0].double()
    candidates = ~(scores < _surely_below(scores, mean_count, weights))  # what is no number stays among them
    ordered, index = scores[candidates].sort(descending=True)
    row = weights[:, None].expand_as(scores)[candidates]
    reached = row[index].cumsum(0) > mean_count * (1 + 1e-12)
    first_over = int(reached.to(torch.uint8).argmax()) if bool(reached.any()) else len(ordered) - 1
    below = ordered[first_over]
    above = ordered[first_over - 1] if first_over > 0 else below + below.abs()
    return torch.where(above.isfinite(), below.lerp(above, 0.5), below)


def _surely_below(scores: Tensor, mean_count: float, weights: Tensor) -> Tensor:
    """A score that more than `mean_count` exceed, so that the others need not be sorted; −∞ where none is known.

    About twice as many as asked for exceed it, by what a sample of the scores shows.
    """
    every = scores.flatten()
    some = every[:: max(len(every) // _SAMPLE, 1)]
    rank = math.ceil(2 * mean_count / scores.shape[1] * len(some))
    lowest = every.new_tensor(-torch.inf)
    if not 0 < rank < len(some):
        return lowest
    rough = some.kthvalue(len(some) - rank + 1).values
    return rough if float(weights @ (scores > rough).double().sum(1)) > mean_count * (1 + 1e-9) else lowest


def nearest_level_for_count(scores: Tensor, mean_count: float, weights: Tensor | None = None) -> Tensor:
    """The same where many scores may be equal, as clipped probabilities are: a tie falls on one side of the cut whole,
    on that side which leaves the count nearer to `mean_count`."""
    cut = level_for_count(scores, mean_count, weights)
    masks = scores > cut, scores >= cut
    counts = [mask.double().sum(1) for mask in masks]
    above, with_tie = (float(n.mean() if weights is None else weights.double() @ n) for n in counts)
    if above == with_tie or with_tie - mean_count >= mean_count - above:
        return cut
    lower = scores[scores < cut]
    return lower.max().lerp(cut, 0.5) if len(lower) else torch.nextafter(cut, torch.full_like(cut, -torch.inf))
