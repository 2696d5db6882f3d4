"""Several starts, or several settings, trained together on the same rows."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch

from softspike.data import Rows, StandardisedRows, Standardiser, on_device
from softspike.fitting.aside import split
from softspike.fitting.fitted import Fitted, prepare
from softspike.fitting.placing import Aside, refit_and_set_aside, tell_if_seen
from softspike.methods import Built, Plan
from softspike.train import Diverged, FullPrecision, Observer, Recipe, check_end, tell_stage, train_replicas

__all__ = ["Outcome", "Start", "best_of", "fit_several"]


class Start(NamedTuple):
    """What a coder begins from."""

    method: Callable[[Plan], Built]
    plan: Plan
    seed: int


class Outcome(NamedTuple):
    """A coder that codes; its probabilities and intervals are left to `calibrate`, which one that is kept is worth."""

    fitted: Fitted
    error: float  # mean over held-out rows and features of (x − x̂)², by the deterministic code; infinite if diverged
    diverged: Diverged | None
    calibrate: Callable[[], None] = lambda: None


def fit_several(
    rows: Rows,
    starts: Sequence[Start],
    standardiser: Standardiser,
    *,
    device: torch.device,
    observers: Sequence[Observer] = (),
) -> list[Outcome]:
    """Train a coder from each start, as `fit_rows` would one of them, through `train_replicas`.

    All learn from the same rows and are judged on the same held-out ones; each draws the numbers that it would alone,
    also where a GPU trains all in one batched pass. The starts share their number of components; those that share their
    recipe train together.
    """
    made = [prepare(method, plan, seed, device, standardiser, FullPrecision()) for method, plan, seed in starts]
    standard = StandardisedRows(on_device(rows, device), standardiser.to(device))
    learning, kept = split(standard, starts[0].plan.n_components)
    ends: dict[int, Diverged | None] = {}
    for alike in _sharing_recipe([fitted.recipe for fitted in made]):
        coders, seeds = [made[number].coder for number in alike], [starts[number].seed for number in alike]
        recipe = made[alike[0]].recipe
        ended = train_replicas(coders, learning, recipe, seeds=seeds, device=device, observers=observers)
        ends.update(zip(alike, ended, strict=True))
    tell = partial(tell_stage, observers)
    asides = {
        number: refit_and_set_aside(kept, learning, fitted, start.plan, tell)
        for number, (fitted, start) in enumerate(zip(made, starts, strict=True))
        if ends[number] is None
    }
    outcomes = [
        _outcome(fitted, starts[number].plan.target_active, asides[number])
        if number in asides
        else Outcome(fitted, float("inf"), ends[number])
        for number, fitted in enumerate(made)
    ]
    if asides:  # the rows are the same for all
        tell_if_seen(made[0].coder, kept, learning, next(iter(asides.values())))
    return outcomes


def _sharing_recipe(recipes: Sequence[Recipe]) -> Iterator[list[int]]:
    """The numbers of those that are equal to each other."""
    left = list(range(len(recipes)))
    while left:
        yield (alike := [number for number in left if recipes[number] == recipes[left[0]]])
        left = [number for number in left if number not in alike]


def _outcome(fitted: Fitted, target_active: float, aside: Aside) -> Outcome:
    given = aside.x, target_active, aside.weights
    fitted.coder.set_count(*given)
    try:
        check_end(fitted.coder, aside.x, fitted.recipe.n_steps)
    except Diverged as error:
        return Outcome(fitted, float("inf"), error)
    return Outcome(fitted, _error(fitted, aside.x), None, partial(fitted.coder.calibrate, *given))


def best_of(outcomes: Sequence[Outcome]) -> Fitted:
    """That of the least error, calibrated; what ended the first, where none came through."""
    best = min(outcomes, key=lambda outcome: outcome.error)
    if best.diverged is not None:
        raise best.diverged
    best.calibrate()
    return best.fitted


@torch.no_grad()
def _error(fitted: Fitted, x: torch.Tensor) -> float:
    return float((x - fitted.coder.generator(fitted.coder.code(x))).square().mean())
