"""Many coders through one recipe."""

import warnings
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
    fused: bool | None = None,
) -> list[Diverged | None]:
    """Train each coder in place, with its own seed, as `train` would alone.

    On a GPU the paper's models train together in one program of fused kernels; the others, and all on a CPU, one after
    the other. `fused` True insists on the one program (NotFused says what has no kernel for it), False forbids it, and
    None takes it where it can, with a warning where a GPU could have been used better.

    Returns for each coder what ended its training early, or None; one that diverges leaves the others alone.
    """
    if len(coders) != len(seeds):
        raise ValueError(f"{len(coders)} coders and {len(seeds)} seeds were given, expected one seed for each coder")
    if fused or (fused is None and torch.device(device).type == "cuda"):
        from softspike.train.fused import NotFused, train_fused  # needs Triton, which CPU builds of torch do not bring

        try:
            for coder in coders:
                coder.to(device)
            return train_fused(coders, rows, recipe, seeds=seeds, device=device, observers=observers)
        except NotFused as why:
            if fused:
                raise
            warnings.warn(f"{why}: these {len(coders)} coders train one after the other", stacklevel=2)
    ends: list[Diverged | None] = []
    for coder, seed in zip(coders, seeds, strict=True):
        try:
            train(coder.to(device), rows, recipe, seed=seed, device=device, observers=observers)
            ends.append(None)
        except Diverged as error:
            ends.append(error.with_traceback(None))  # its frames would keep everything they saw alive
    return ends
