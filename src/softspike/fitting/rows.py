"""From rows and a plan to a fitted coder: standardise, train, calibrate. Estimator and command line both call it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from softspike.coder import Coder
from softspike.data import DataError, Rows, StandardisedRows, Standardiser, SubsetRows, on_device
from softspike.fitting.aside import Kept, balancing_weights, energies, none_kept, same_kept, split
from softspike.fitting.dictionary import refit_dictionary
from softspike.methods import Built, Plan, build
from softspike.notice import notice
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
    automatic_precision,
    check_end,
    pack,
    tell_stage,
    train,
    train_recovering,
    unpack,
)

__all__ = [
    "Checkpoint", "Fitted", "Placed", "check_size", "fit_rows", "pick_device", "place_on", "prepare", "restore",
    "tell_if_seen",
]  # fmt: skip

_JUDGED_ROWS, _ENERGIES = 1024, 2**16
_REPEATED = 0.5  # a share of repeated rows from which the count on unseen ones suffers


class Checkpoint(NamedTuple):
    step: int
    tensors: dict[str, Tensor]


class Fitted(NamedTuple):
    coder: Coder
    standardiser: Standardiser
    recipe: Recipe
    optimizer: Optimizer
    precision: Precision

    def tensors(self) -> dict[str, Tensor]:
        """The whole state as named tensors: coder, optimiser, standardiser, and the scale of a scaled loss."""
        own = {f"standardiser.{name}": value for name, value in self.standardiser.state_dict().items()}
        scaling = {f"precision.{name}": value for name, value in self.precision.state().items()}
        return {**pack(self.coder, self.optimizer), **own, **scaling}


def pick_device(name: str) -> torch.device:
    """'auto' is a GPU where there is one; a device that is asked for by name must exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device is {name!r}, expected 'auto', 'cpu' or 'cuda'") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r} but no GPU is available here; use device='cpu' or 'auto'")
    if device.type not in ("cpu", "cuda") and not _computes(device):
        raise ValueError(f"device is {name!r}, which cannot be computed on here; use device='cpu' or 'auto'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {name!r} but there are {torch.cuda.device_count()} GPUs here, numbered from 0")
    return device


def _computes(device: torch.device) -> bool:
    """Whether numbers can be put there and come back: not so on 'meta', nor on what this torch was not built for."""
    try:
        return float(torch.ones(1, device=device)) == 1
    except Exception:  # each kind of device has errors of its own
        return False


def prepare(
    method: Callable[[Plan], Built],
    plan: Plan,
    seed: int,
    device: torch.device,
    standardiser: Standardiser,
    precision: Precision | None = None,
) -> Fitted:
    """An untrained coder with its optimiser and a standardiser of its own, on its device; a precision of None is the
    one that suits both."""
    coder, recipe = build(method, plan, seed)
    coder.to(device).eval()
    precision = automatic_precision(coder.generator, device) if precision is None else precision
    return Fitted(coder, deepcopy(standardiser).to(device), recipe, recipe.build(coder.parameter_groups()), precision)


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
        _go_on(fitted, resume)
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
        aside = place_on(kept, learning, fitted, plan, between)
        fitted.coder.calibrate(aside.x, plan.target_active, aside.weights)
        tell_if_seen(fitted.coder, kept, learning, aside)
        check_end(fitted.coder, aside.x[:_JUDGED_ROWS], recipe.n_steps)

    with _same_size(rows):
        train_recovering(train_from, recipe, recovery, on_rollback)
    return fitted


class Placed(NamedTuple):
    """Rows that training never saw, as a coder sees them, and what each stands for: what its cut is placed on."""

    x: Tensor  # (n, D)
    weights: Tensor  # (n,)
    repeated: float  # the share of them that training saw all the same, in rows that are equal to them


def place_on(kept: Kept, learning: Rows, fitted: Fitted, plan: Plan, between: Callable[[str], None]) -> Placed:
    """Refit the atoms of a coder, where it has any; the rows to calibrate it on then. `between` is told what comes
    next, and may raise to stop there. Rows may be seen through the coder's own standardiser: it is moved in the end."""
    coder, standardiser = fitted.coder, fitted.standardiser
    own, others = energies(kept.rows), energies(SubsetRows.spread(learning, _ENERGIES))
    repeated = float(torch.isin(own, others).double().mean())  # rows of equal energy, to the last bit, are equal
    aside = kept.rows.take(torch.arange(len(kept.rows))).to(standardiser.mean.device)
    origin = torch.zeros_like(aside[0])
    if kept.unseen:  # else nothing could say when to stop
        origin = refit_dictionary(coder, plan, learning, aside, between).origin
    between("calibrating")
    standardiser.mean = standardiser.mean + standardiser.scale * origin  # in place it would move checkpoints as well
    return Placed(aside - origin, balancing_weights(own, others), repeated)


def tell_if_seen(coder: Coder, kept: Kept, learning: Rows, aside: Placed) -> None:
    """Warn where a count was placed on the rows that were learned from."""
    if coder.counts_by_rows and not kept.unseen:
        notice(none_kept(learning))
    elif coder.counts_by_rows and aside.repeated > _REPEATED:
        notice(same_kept(aside.repeated))


def check_size(plan: Plan, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError where a model of this plan is larger than the tensors that are to fill it: nothing is built."""
    stored = sum(value.numel() for value in tensors.values())
    needed = plan.n_components * (plan.n_features if plan.networks is None else 1)
    if max(needed, plan.n_features, plan.encoder_steps, plan.correction_rounds) > stored:
        raise ValueError(f"the configuration asks for at least {needed} numbers, the file holds {stored}")


def _go_on(fitted: Fitted, resume: Checkpoint) -> None:
    try:
        restore(fitted, resume.tensors)
    except (KeyError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"the checkpoint of step {resume.step} is not one of this model ({why}); train again"
        ) from error


def restore(fitted: Fitted, tensors: dict[str, Tensor]) -> None:
    """Put the tensors of a checkpoint or of a finished model back, in place."""
    unpack(tensors, fitted.coder, fitted.optimizer)
    fitted.standardiser.load_state_dict(_below(tensors, "standardiser."))
    fitted.precision.restore(_below(tensors, "precision."))


def _below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


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
