"""Replicas of any coder whose loss can be batched, through one forward and backward pass."""

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext

import torch
from torch import Generator, Tensor, nn

from softspike.coder import Coder, Loss, Trainable
from softspike.data import Rows
from softspike.posterior import Generators
from softspike.schedule import Time
from softspike.train.augment import AsItIs
from softspike.train.captured import CapturedStep, capturable
from softspike.train.diverged import Diverged, check_losses, check_parameters
from softspike.train.loop import Observer, Progress, training
from softspike.train.order import Orders, step_random
from softspike.train.recipe import Recipe
from softspike.train.stack import Stack
from softspike.train.team import Alone

__all__ = ["BatchedStep", "train_batched"]


class BatchedStep:
    """One step of all coders of a stack, as `Step` is one of a single coder."""

    def __init__(self, stack: Stack, recipe: Recipe, seeds: Sequence[int], device: torch.device):
        self.stack, self.recipe, self.seeds, self.device = stack, recipe, seeds, device
        self.coder: Trainable = stack.coders[0]
        self.optimizer, self.worked = recipe.build(stack.groups()), False

    def __call__(self, x: Tensor, step: int) -> Loss:
        self.recipe.set_rates(self.optimizer, step)
        return self.descend(x, step, Generators([step_random(seed, step, self.device) for seed in self.seeds]))

    def random(self) -> Generator:
        return Generators([Generator(device=self.device) for _ in self.seeds])

    def descend(self, x: Tensor, time: Time, random: Generator) -> Loss:
        self.stack.forget_gradients()
        with nullcontext() if self.worked else self.stack.tried():
            losses = self.stack.loss(x, time, random)
            losses.total.sum().backward()
        self.worked = True
        self.stack.share_gradients()
        for coder in self.stack.coders:
            coder.before_step()
            if self.recipe.clip_norm is not None:
                nn.utils.clip_grad_norm_(_trained(coder), self.recipe.clip_norm)
        self.optimizer.step()
        return Loss(*(part.detach() for part in losses))


class Batches:
    """Each step's rows for every replica, (R, B, D): each has an order of its own, all are taken at once."""

    def __init__(self, rows: Rows, recipe: Recipe, seeds: Sequence[int], device: torch.device):
        self.rows, self.recipe, self.seeds, self.device = rows, recipe, seeds, device
        self.orders = Orders(seeds, len(rows), recipe.batch_size)

    def __call__(self, step: int) -> Tensor:
        chosen = self.orders(step)
        x = self.rows.take(chosen.flatten()).to(self.device, non_blocking=True).unflatten(0, chosen.shape)
        if isinstance(self.recipe.augment, AsItIs):
            return x
        own = zip(x, self.seeds, strict=True)
        return torch.stack([self.recipe.augment(batch, seed, step, Alone()) for batch, seed in own])


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
    """As `train_in_turn`, in one program; NotTogether, before anything is trained, for what cannot be batched.

    Every replica sees the rows and draws the numbers that it would alone. Products of many replicas sum in another
    order than those of one, so weights agree to rounding: after a dozen steps to 1e-4 of the largest on a CPU. (There,
    the best of J of large batches draws from compiled code when alone, other numbers of the same law.) Steps on a GPU
    are recorded once and replayed, unless not `captured`.
    """
    device = torch.device(device)
    stack = Stack([coder.to(device) for coder in coders])
    one, batches = BatchedStep(stack, recipe, seeds, device), Batches(rows, recipe, seeds, device)
    take = CapturedStep(one) if captured and capturable(one, recipe.n_steps) else one
    ends: list[Diverged | None] = [None] * len(coders)
    unchecked: list[Tensor] = []  # (R,) losses of each step since the last check, left on the device
    with ExitStack() as after:
        after.callback(stack.release)
        after.callback(stack.forget_gradients)
        for coder in coders:
            after.enter_context(training(coder, device))
        for step in range(recipe.n_steps):
            losses = take(batches(step), step)
            for coder in coders:
                coder.after_step(step)
            unchecked.append(losses.total)
            if (step + 1) % recipe.log_every == 0 or step + 1 == recipe.n_steps:
                _note_ends(ends, losses, torch.stack(unchecked), step + 1)
                unchecked.clear()
                mean = Loss(*(part.mean() for part in losses))
                for observer in observers:
                    observer.logged(Progress(step + 1, recipe.n_steps, mean, coders[0], one.optimizer))
    _note_bad_ends(ends, coders, recipe.n_steps)
    return ends


def _note_ends(ends: list[Diverged | None], losses: Loss, totals: Tensor, done: int) -> None:
    """What `train` would have stopped each replica for; they are read from the device at once."""
    last = torch.stack([part.detach().float() for part in losses]).cpu()
    totals = totals.cpu()
    for number in range(len(ends)):
        if ends[number] is None:
            try:
                check_losses(Loss(*last[:, number]), totals[:, number], done)
            except Diverged as error:
                ends[number] = error.with_traceback(None)


def _note_bad_ends(ends: list[Diverged | None], coders: Sequence[Coder], done: int) -> None:
    for number, coder in enumerate(coders):
        if ends[number] is None:
            try:
                check_parameters(coder, done)
            except Diverged as error:
                ends[number] = error.with_traceback(None)


def _trained(coder: Coder) -> list[nn.Parameter]:
    return [p for group in coder.parameter_groups().values() for p in group]
