"""Many coders through one recipe."""

from collections.abc import Sequence

import torch

from softspike.coder import Coder
from softspike.data import Rows
from softspike.train.loop import Diverged, Observer, train
from softspike.train.recipe import Recipe

__all__ = ["train_replicas"]


def train_replicas(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
) -> list[Diverged | None]:
    """Train each coder in place, with its own seed, as `train` would alone: one after the other.

    Returns for each coder what ended its training early, or None; one that diverges leaves the others alone.
    """
    if len(coders) != len(seeds):
        raise ValueError(f"{len(coders)} coders and {len(seeds)} seeds were given, expected one seed for each coder")
    ends: list[Diverged | None] = []
    for coder, seed in zip(coders, seeds, strict=True):
        try:
            train(coder.to(device), rows, recipe, seed=seed, device=device, observers=observers)
            ends.append(None)
        except Diverged as error:
            ends.append(error)
    return ends
