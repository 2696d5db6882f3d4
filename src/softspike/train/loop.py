"""7  The only loop."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import nn
from torch.optim import Optimizer

from softspike.coder import Coder, Loss
from softspike.data import Rows
from softspike.train.order import batch_rows, step_random
from softspike.train.recipe import Recipe

__all__ = ["Diverged", "Observer", "Progress", "train"]


class Progress(NamedTuple):
    """Where training stands; handed to observers between steps."""

    step: int  # steps done
    n_steps: int
    loss: Loss  # of the last step
    coder: Coder
    optimizer: Optimizer


class Observer(Protocol):
    """Something that watches the loop: a progress bar, a log, a checkpoint writer."""

    def logged(self, progress: Progress) -> None:
        """Every `log_every` steps and after the last."""

    def saved(self, progress: Progress) -> None:
        """Every `save_every` steps and after the last."""


class Diverged(RuntimeError):
    """Training stopped making sense: says at which step and why."""

    def __init__(self, step: int, cause: str):
        super().__init__(
            f"training diverged at step {step}: {cause}; lower the learning rate or check the data's scale"
        )
        self.step, self.cause = step, cause


def train(
    coder: Coder,
    rows: Rows,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    optimizer: Optimizer | None = None,
    start: int = 0,
    observers: Sequence[Observer] = (),
) -> Optimizer:
    """Run steps start … n_steps. The same coder, rows, recipe and seed give the same weights, bit for bit, on a CPU."""
    optimizer = optimizer if optimizer is not None else recipe.build(coder.parameter_groups())
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for step in range(start, recipe.n_steps):
        x = rows.take(batch_rows(seed, step, len(rows), recipe.batch_size)).to(device, non_blocking=True)
        recipe.set_rates(optimizer, step)
        loss = coder.loss(x, step, step_random(seed, step, device))
        optimizer.zero_grad(set_to_none=True)
        loss.total.backward()
        if recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(parameters, recipe.clip_norm)
        optimizer.step()
        coder.after_step()

        done, last = step + 1, step + 1 == recipe.n_steps
        logging, saving = last or done % recipe.log_every == 0, last or done % recipe.save_every == 0
        if logging or saving:
            _check(loss, parameters, step)
            progress = Progress(done, recipe.n_steps, Loss(*(v.detach() for v in loss)), coder, optimizer)
            for observer in observers:
                if logging:
                    observer.logged(progress)
                if saving:
                    observer.saved(progress)
    return optimizer


def _check(loss: Loss, parameters: list[nn.Parameter], step: int) -> None:
    """Losses and weights are checked before anything is logged or saved, so a saved state is always a good one."""
    if not torch.isfinite(loss.total):
        bad = [name for name, value in loss._asdict().items() if not torch.isfinite(value)]
        raise Diverged(step, f"{' and '.join(bad)} not finite")
    if float(loss.misfit) > 1e6:
        raise Diverged(step, f"the reconstruction error per feature reached {float(loss.misfit):.3g}")
    if not all(bool(torch.isfinite(p.detach()).all()) for p in parameters):
        raise Diverged(step, "a parameter is not finite")
