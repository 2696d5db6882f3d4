"""Many coders through one recipe."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch.optim import SGD

from softspike.coder import Coder
from softspike.data import Rows
from softspike.notice import notice
from softspike.train.batched import train_batched
from softspike.train.diverged import Diverged
from softspike.train.loop import Observer, train
from softspike.train.recipe import Recipe
from softspike.train.together import NotTogether

__all__ = ["Engine", "train_in_turn", "train_replicas"]


class Engine(Protocol):
    """A way to train many: `train_in_turn`, `train_batched`, or `softspike.train.fused.train_fused`."""

    def __call__(
        self,
        coders: Sequence[Coder],
        rows: Rows,
        recipe: Recipe,
        *,
        seeds: Sequence[int],
        device: torch.device | str,
        observers: Sequence[Observer] = (),
    ) -> list[Diverged | None]: ...


def train_in_turn(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
) -> list[Diverged | None]:
    """One after the other, each by `train`: the reference that the other engines must equal."""
    ends: list[Diverged | None] = []
    for coder, seed in zip(coders, seeds, strict=True):
        try:
            train(coder.to(device), rows, recipe, seed=seed, device=device, observers=observers)
            ends.append(None)
        except Diverged as error:
            ends.append(error.with_traceback(None))  # its frames would keep everything they saw alive
    return ends


def train_replicas(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    engine: Engine | None = None,
) -> list[Diverged | None]:
    """Train each coder in place, with its own seed, as `train` would alone.

    Without an engine, on a GPU: the paper's models through fused kernels; others that differ in their tensors alone
    through one batched pass, in which each draws the numbers that it would alone; and the rest in turn. A warning says
    why where that is one step down: from kernels that are for such a recipe, SGD without clipping, or from company. On
    a CPU always in turn: it has no idle arithmetic that company could use.

    In turn a replica is what `train` makes of it, bit for bit on a CPU. Batched, it is the same up to the order of
    sums: 1e-9 in float64, in float32 2e-3 of the norm of each parameter after twenty steps (1e-2 with Gamma levels), on
    a GPU too, and further apart as steps go on, as for any change of that order. The fused kernels draw other numbers
    of the same laws.

    Returns for each coder what ended its training early, or None; one that diverges leaves the others alone.
    """
    if len(coders) != len(seeds):
        raise ValueError(f"{len(coders)} coders and {len(seeds)} seeds were given, expected one seed for each coder")
    if engine is not None:
        return engine(coders, rows, recipe, seeds=seeds, device=device, observers=observers)
    one = len(coders) == 1
    for candidate, otherwise, expected in _engines(device, len(coders)):
        try:
            return candidate(coders, rows, recipe, seeds=seeds, device=device, observers=observers)
        except NotTogether as why:
            if expected(recipe):
                notice(f"{why}: {'it trains' if one else f'these {len(coders)} coders train'} {otherwise}")
    return train_in_turn(coders, rows, recipe, seeds=seeds, device=device, observers=observers)


class _Way(NamedTuple):
    engine: Engine
    otherwise: str  # what comes where it refuses
    expected: Callable[[Recipe], bool]  # whether who gives such a recipe should hear of a refusal


def _engines(device: torch.device | str, n_coders: int) -> list[_Way]:
    """What to try in turn, before `train_in_turn`."""
    if torch.device(device).type != "cuda":
        return []
    if n_coders == 1:
        return [_Way(_fused, "by the plain loop", lambda recipe: True)]
    return [
        _Way(_fused, "in one batched pass", lambda recipe: recipe.optimizer is SGD and recipe.clip_norm is None),
        _Way(train_batched, "one after the other", lambda recipe: True),
    ]


def _fused(coders: Sequence[Coder], rows: Rows, recipe: Recipe, **named: Any) -> list[Diverged | None]:
    try:
        from softspike.train.fused import train_fused
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "triton":
            raise
        raise NotTogether("the fused kernels need Triton, which is not installed") from error
    return train_fused(coders, rows, recipe, **named)
