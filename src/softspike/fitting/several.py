"""Several starts, or several settings, trained together on the same rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch

from softspike.data import Rows, StandardisedRows, Standardiser, on_device
from softspike.fitting.aside import split
from softspike.fitting.rows import Fitted, calibrate_on, prepare
from softspike.methods import Built, Plan
from softspike.train import Diverged, FullPrecision, Observer, check_end, tell_stage, train_replicas

__all__ = ["Outcome", "Start", "best_of", "fit_several"]


class Start(NamedTuple):
    """What a coder begins from."""

    method: Callable[[Plan], Built]
    plan: Plan
    seed: int


class Outcome(NamedTuple):
    fitted: Fitted
    error: float  # mean over held-out rows and features of (x − x̂)², by the deterministic code; infinite if diverged
    diverged: Diverged | None


def fit_several(
    rows: Rows,
    starts: Sequence[Start],
    standardiser: Standardiser,
    *,
    device: torch.device,
    observers: Sequence[Observer] = (),
) -> list[Outcome]:
    """Train and calibrate a coder from each start, as `fit_rows` would one of them, through `train_replicas`.

    All learn from the same rows and are judged on the same held-out ones; each draws the numbers that it would alone,
    also where a GPU trains all in one batched pass. The starts share their number of components and their recipe.
    """
    made = [prepare(method, plan, seed, device, standardiser, FullPrecision()) for method, plan, seed in starts]
    standard = StandardisedRows(on_device(rows, device), standardiser.to(device))
    learning, kept = split(standard, starts[0].plan.n_components)
    ends = train_replicas(
        [fitted.coder for fitted in made], learning, made[0].recipe, seeds=[start.seed for start in starts],
        device=device, observers=observers,
    )  # fmt: skip
    tell = partial(tell_stage, observers)
    return [
        _outcome(fitted, calibrate_on(kept, learning, fitted, start.plan, tell))
        if end is None
        else Outcome(fitted, float("inf"), end)
        for fitted, start, end in zip(made, starts, ends, strict=True)
    ]


def _outcome(fitted: Fitted, x: torch.Tensor) -> Outcome:
    try:
        check_end(fitted.coder, x, fitted.recipe.n_steps)
    except Diverged as error:
        return Outcome(fitted, float("inf"), error)
    return Outcome(fitted, _error(fitted, x), None)


def best_of(outcomes: Sequence[Outcome]) -> Fitted:
    """That of the least error; what ended the first, where none came through."""
    best = min(outcomes, key=lambda outcome: outcome.error)
    if best.diverged is not None:
        raise best.diverged
    return best.fitted


@torch.no_grad()
def _error(fitted: Fitted, x: torch.Tensor) -> float:
    return float((x - fitted.coder.generator(fitted.coder.code(x))).square().mean())
