"""Replicas of any coder whose loss draws nothing, through one batched forward and backward pass."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from softspike.coder import Coder, Loss, Trainable
from softspike.data import Rows
from softspike.schedule import Time
from softspike.train.captured import CapturedStep, capturable
from softspike.train.loop import Diverged, Observer, Progress
from softspike.train.order import batch_rows
from softspike.train.recipe import Recipe
from softspike.train.stack import Stack

__all__ = ["BatchedStep", "train_batched"]


class BatchedStep:
    """One step of all coders of a stack, as `Step` is one of a single coder."""

    def __init__(self, stack: Stack, recipe: Recipe, seeds: Sequence[int], device: torch.device):
        self.stack, self.recipe, self.seeds, self.device = stack, recipe, seeds, device
        self.coder: Trainable = stack.coders[0]
        self.seed = seeds[0]  # nothing is drawn: any will do
        self.optimizer = recipe.build(stack.groups())

    def batches(self, rows: Rows, step: int) -> Tensor:
        """(R, B, D): each replica has an order of its own."""
        chosen = [batch_rows(seed, step, len(rows), self.recipe.batch_size) for seed in self.seeds]
        return torch.stack([rows.take(indices) for indices in chosen]).to(self.device)

    def __call__(self, x: Tensor, step: int) -> Loss:
        self.recipe.set_rates(self.optimizer, step)
        return self.descend(x, step, None)

    def descend(self, x: Tensor, time: Time, random: Generator | None) -> Loss:
        self.stack.forget_gradients()
        losses = self.stack.loss(x, time)
        losses.total.sum().backward()
        self.stack.share_gradients()
        for coder in self.stack.coders:
            coder.before_step()
            if self.recipe.clip_norm is not None:
                nn.utils.clip_grad_norm_(_trained(coder), self.recipe.clip_norm)
        self.optimizer.step()
        return Loss(*(part.detach() for part in losses))


def train_batched(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cpu",
    observers: Sequence[Observer] = (),
    captured: bool = True,
) -> list[Diverged | None]:
    """As `train_in_turn`, in one program; NotTogether where the loss draws samples or cannot be batched.

    Steps on a GPU are recorded once and replayed, unless not `captured`.
    """
    stack = Stack([coder.to(device) for coder in coders])
    one = BatchedStep(stack, recipe, seeds, torch.device(device))
    take = CapturedStep(one) if captured and capturable(one, recipe.n_steps) else one
    ends: list[Diverged | None] = [None] * len(coders)
    try:
        for step in range(recipe.n_steps):
            losses = take(one.batches(rows, step), step)
            for coder in coders:
                coder.after_step(step)
            if (step + 1) % recipe.log_every == 0 or step + 1 == recipe.n_steps:
                progress = Progress(step + 1, recipe.n_steps, _mean(losses), coders[0], one.optimizer)
                _report(losses, ends, progress, observers)
    finally:
        stack.forget_gradients()
        stack.release()
    return ends


def _report(losses: Loss, ends: list[Diverged | None], progress: Progress, observers: Sequence[Observer]) -> None:
    for number, total in enumerate(losses.total.tolist()):
        if ends[number] is None and not abs(total) < float("inf"):
            ends[number] = Diverged(progress.step, "the loss is not finite")
    for observer in observers:
        observer.logged(progress)


def _mean(losses: Loss) -> Loss:
    return Loss(*(part.mean() for part in losses))


def _trained(coder: Coder) -> list[nn.Parameter]:
    return [p for group in coder.parameter_groups().values() for p in group]
