"""7  The loop, one coder and one step at a time: what `train_batched` and `train_fused` are held against."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.optim import Optimizer

from softspike.coder import Loss, Trainable
from softspike.data import Rows
from softspike.train.captured import CapturedStep, capturable
from softspike.train.direct import DirectStep, direct
from softspike.train.diverged import Diverged, check_losses, check_parameters
from softspike.train.interrupt import Interrupted
from softspike.train.order import batch_rows
from softspike.train.precision import FullPrecision, Precision
from softspike.train.recipe import Recipe
from softspike.train.step import Step
from softspike.train.team import Alone, Team

__all__ = ["Observer", "Progress", "Staged", "current", "tell_stage", "train", "training"]


class Progress(NamedTuple):
    """Where training stands; handed to observers between steps."""

    step: int  # steps done
    n_steps: int
    loss: Loss  # of the last step, over all processes
    coder: Trainable
    optimizer: Optimizer


class Observer(Protocol):
    """Something that watches the loop: a progress bar, a log, a checkpoint writer."""

    def logged(self, progress: Progress) -> None:
        """Every `log_every` steps and after the last."""

    def saved(self, progress: Progress) -> None:
        """Every `save_every` steps, after the last, and where training is asked to stop."""


@runtime_checkable
class Staged(Protocol):
    """An observer that also shows what comes after the last step."""

    def stage(self, name: str) -> None:
        """This begins, or goes on."""


def tell_stage(observers: Sequence[Observer], name: str) -> None:
    """Tell those observers that show stages."""
    for observer in observers:
        if isinstance(observer, Staged):
            observer.stage(name)


def train(
    coder: Trainable,
    rows: Rows,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    optimizer: Optimizer | None = None,
    start: int = 0,
    observers: Sequence[Observer] = (),
    stop: Callable[[], bool] = lambda: False,
    precision: Precision = FullPrecision(),
    team: Team = Alone(),
    captured: bool = True,
) -> Optimizer:
    """Run steps start … n_steps. The same coder, rows, recipe and seed give the same weights, bit for bit, on a CPU.

    `stop` is asked after every step; where it says yes, the step is saved and `Interrupted` raised. Steps on a GPU
    are recorded once and replayed (`CapturedStep`), where they can be and unless `captured` is False.
    """
    device = torch.device(device)
    optimizer = optimizer if optimizer is not None else recipe.build(coder.parameter_groups())
    plain = Step(coder, optimizer, recipe, seed, device, precision, team)
    kept = [*coder.buffers(), *(parameter.data for parameter in plain.steered)]
    recorded = captured and not plain.others_ask_host and capturable(plain, recipe.n_steps - start)
    take = CapturedStep(plain) if recorded else DirectStep(plain) if direct(plain) else plain
    unchecked: list[Tensor] = []  # losses since the last check, left on the device
    with team.joined(coder), training(coder, device):
        for step in range(start, recipe.n_steps):
            chosen = team.share(batch_rows(seed, step, len(rows), recipe.batch_size))
            x = recipe.augment(rows.take(chosen).to(device, non_blocking=True), seed, step, team)
            loss = _taken(take, x, step)
            coder.after_step(step)
            team.follow(kept)
            unchecked.append(loss.total)

            done, last, stopping = step + 1, step + 1 == recipe.n_steps, team.agree(stop())
            logging, saving = last or done % recipe.log_every == 0, last or stopping or done % recipe.save_every == 0
            if logging or saving:
                loss = Loss(*team.mean(torch.stack([value.float() for value in loss])))
                check_losses(loss, team.mean(torch.stack(unchecked)), done)
                check_parameters(coder, done)
                unchecked.clear()
                _tell(observers, Progress(done, recipe.n_steps, loss, coder, optimizer), logging, saving)
            if stopping and not last:
                raise Interrupted(done)
    return optimizer


@contextmanager
def training(coder: Trainable, device: torch.device) -> Iterator[None]:
    """Batch norm learns inside and is settled outside; cuDNN may try its algorithms, as the shapes never change."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or device.type == "cuda"
    coder.train()
    try:
        with torch.enable_grad(), current(device):  # whoever called may have switched it off
            yield
    finally:
        coder.eval()
        torch.backends.cudnn.benchmark = before


def current(device: torch.device | str) -> AbstractContextManager[object]:
    """Inside, a GPU is the one that work is sent to: graphs are recorded, and kernels launched, on the current one."""
    device = torch.device(device)
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _tell(observers: Sequence[Observer], progress: Progress, logging: bool, saving: bool) -> None:
    for observer in observers:
        if logging:
            observer.logged(progress)
        if saving:
            observer.saved(progress)


def _taken(take: Callable[[Tensor, int], Loss], x: Tensor, step: int) -> Loss:
    try:
        return take(x, step)
    except torch.linalg.LinAlgError as error:  # a solver met weights that are no longer finite
        raise Diverged(step + 1, f"the loss is not finite ({str(error).splitlines()[0]})") from error
