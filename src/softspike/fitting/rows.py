"""From rows and a plan to a fitted coder: standardise, train, calibrate. Estimator and command line both call it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softspike.data import DataError, Rows, StandardisedRows, Standardiser, on_device
from softspike.fitting.aside import split
from softspike.fitting.fitted import Checkpoint, Fitted, go_on, prepare, restore
from softspike.fitting.placing import refit_and_set_aside, tell_if_seen
from softspike.methods import Built, Plan
from softspike.train import (
    Alone,
    Interrupted,
    Observer,
    Precision,
    Progress,
    Recipe,
    Recovery,
    Rollback,
    Team,
    check_end,
    tell_stage,
    train,
    train_recovering,
)

__all__ = ["fit_rows"]

_JUDGED_ROWS = 1024


def fit_rows(
    rows: Rows,
    method: Callable[[Plan], Built],
    plan: Plan,
    standardiser: Standardiser | None = None,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    on_checkpoint: Callable[[int, dict[str, Tensor]], Any] | None = None,
    checkpoint_every: int = 1000,
    resume: Checkpoint | None = None,
    stop: Callable[[], bool] = lambda: False,
    precision: Precision | None = None,
    team: Team = Alone(),
    on_rollback: Callable[[Rollback], object] = lambda rollback: None,
) -> Fitted:
    """Train on the rows and calibrate the sparsity; `resume` goes on from a checkpoint, bit-identically on a CPU.

    Where training diverges it goes back to the last checkpoint, kept in memory, and on with a lower learning rate,
    three times at most; `on_rollback` is told.

    Of a team of processes every one calls this with the same arguments, and ends with the same coder.
    """
    device = torch.device(device)
    if standardiser is None:
        standardiser = Standardiser.identity(rows.n_features) if resume else Standardiser.fit(rows)
    fitted = prepare(method, plan, seed, device, standardiser, precision)
    recipe = replace(fitted.recipe, save_every=checkpoint_every)
    if resume:
        go_on(fitted, resume)
    recovery = Recovery(
        fitted.tensors, partial(restore, fitted), resume.step if resume else 0, resume.tensors if resume else None
    )
    watching = [recovery, *observers, *([_Saver(recovery, on_checkpoint)] if on_checkpoint else [])]
    standard = StandardisedRows(on_device(rows, device), fitted.standardiser)
    learning, kept = split(standard, plan.n_components)

    def between(stage: str) -> None:
        tell_stage(observers, stage)
        if stop():
            raise Interrupted(recovery.newest[0])

    def train_from(recipe: Recipe, start: int) -> None:
        try:
            train(
                fitted.coder, learning, recipe, seed=seed, device=device, optimizer=fitted.optimizer, start=start,
                observers=watching, stop=stop, precision=fitted.precision, team=team,
            )  # fmt: skip
        except Interrupted as stopped:
            stopped.step = recovery.step  # the last that was kept
            raise
        aside = refit_and_set_aside(kept, learning, fitted, plan, between)
        fitted.coder.calibrate(aside.x, plan.target_active, aside.weights)
        tell_if_seen(fitted.coder, kept, learning, aside)
        check_end(fitted.coder, aside.x[:_JUDGED_ROWS], recipe.n_steps)

    with _same_size(rows):
        train_recovering(train_from, recipe, recovery, on_rollback)
    return fitted


class _Saver:
    """Hands the state to `on_checkpoint`, where it was found worth keeping."""

    def __init__(self, kept: Recovery, on_checkpoint: Callable[[int, dict[str, Tensor]], Any]):
        self.kept, self.on_checkpoint = kept, on_checkpoint

    def logged(self, progress: Progress) -> None: ...

    def saved(self, progress: Progress) -> None:
        step, tensors = self.kept.newest
        if step == progress.step:
            self.on_checkpoint(step, tensors)


@contextmanager
def _same_size(rows: Rows) -> Iterator[None]:
    """One sentence where rows that training wants are no longer there; rows that were added are not seen."""
    before = len(rows)
    try:
        yield
    except IndexError as error:
        if len(rows) == before:
            raise
        raise DataError(
            f"the data had {before} rows when training began and has {len(rows)} now, expected it to stay as it was; "
            "train on a copy."
        ) from error
