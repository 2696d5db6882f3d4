"""From rows and a plan to a fitted coder: standardise, train, calibrate. Estimator and command line both call it."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from softspike.coder import Coder
from softspike.data import DataError, Rows, StandardisedRows, Standardiser, SubsetRows, on_device
from softspike.data.chunks import chunks
from softspike.methods import Built, Plan, build
from softspike.refitting import refit_dictionary
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
    "Checkpoint", "Fitted", "calibrate_on", "check_size", "fit_rows", "pick_device", "prepare", "restore", "split",
]  # fmt: skip

# Enough rows to place the cut within about a per cent, few enough to hold their scores in memory.
_FEWEST_ROWS, _CALIBRATION_ROWS, _CALIBRATION_NUMBERS = 50, 8192, 2**24
_JUDGED_ROWS, _ENERGIES = 1024, 2**16


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
    """An untrained coder with its optimiser, on its device; a precision of None is the one that suits both."""
    coder, recipe = build(method, plan, seed)
    coder.to(device).eval()
    precision = automatic_precision(coder.generator, device) if precision is None else precision
    return Fitted(coder, standardiser.to(device), recipe, recipe.build(coder.parameter_groups()), precision)


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
        aside = calibrate_on(kept, learning, [(fitted.coder, plan)], device, between)
        check_end(fitted.coder, aside[:_JUDGED_ROWS], recipe.n_steps)

    with _same_size(rows):
        train_recovering(train_from, recipe, recovery, on_rollback)
    return fitted


def calibrate_on(
    kept: "Kept", learning: Rows, trained: Sequence[tuple[Coder, Plan]], device: torch.device,
    between: Callable[[str], None],
) -> Tensor:  # fmt: skip
    """Refit the atoms of each coder, where it has any, and place its cut for its plan's target, on rows that training
    never saw; these rows, (n, D). `between` is told what comes next, and may raise to stop there."""
    weights = balancing_weights(_energies(kept.rows), _energies(SubsetRows.spread(learning, _ENERGIES)))
    aside = kept.rows.take(torch.arange(len(kept.rows))).to(device)
    for coder, plan in trained:
        if kept.unseen:  # else nothing could say when to stop
            refit_dictionary(coder, plan, learning, aside, between)
        between("calibrating")
        coder.calibrate(aside, plan.target_active, weights)
    if not kept.unseen and any(coder.counts_by_rows for coder, _ in trained):
        few = len(learning) < 4 * _FEWEST_ROWS
        warnings.warn(
            f"{len(learning)} rows {'are too few' if few else f'of {learning.n_features} numbers are too large'} to "
            "keep any aside: the number of active components was set on those that were trained on and may be tens of "
            "per cent higher on unseen ones; "
            + (
                f"give {4 * _FEWEST_ROWS} or more, some thousands to meet it within a few per cent"
                if few
                else "give narrower data"
            ),
            stacklevel=2,
        )
    return aside


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
    most = max(_CALIBRATION_NUMBERS // max(n_components, rows.n_features), 1)
    n = min(max(len(rows) // 10, min(len(rows) // 4, 1000)), _CALIBRATION_ROWS, most)
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


def _energies(rows: Rows) -> Tensor:
    """‖x‖²/D of each row, a chunk at a time: wide rows by the thousand would not fit in memory."""
    return torch.cat([chunk.x.double().square().mean(-1) for chunk in chunks(rows)])


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
