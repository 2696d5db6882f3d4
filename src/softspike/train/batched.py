"""Replicas of any coder whose loss draws nothing, through one batched forward and backward pass (`torch.func.vmap`)."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from softspike.coder import Coder, Loss, Trainable
from softspike.data import Rows
from softspike.schedule import Time
from softspike.train.captured import CapturedStep, capturable
from softspike.train.loop import Diverged, Observer, Progress
from softspike.train.order import batch_rows
from softspike.train.recipe import Recipe
from softspike.train.together import NotTogether

__all__ = ["BatchedStep", "Stack", "train_batched"]


class _LossOf(nn.Module):
    """A coder whose forward pass is its loss: what `functional_call` can call."""

    def __init__(self, coder: Coder):
        super().__init__()
        self.coder = coder

    def forward(self, x: Tensor, step: Time) -> Loss:
        return self.coder.loss(x, step, None)


class Stack:
    """Coders whose parameters and buffers are slices of stacked tensors (R, …): what one sees, the other sees."""

    def __init__(self, coders: Sequence[Coder]):
        self.coders, self._template = coders, _LossOf(coders[0])
        if any(_shapes(coder) != _shapes(coders[0]) for coder in coders):
            raise NotTogether("the coders differ in their parameters; replicas share all shapes")
        self.parameters = {name: self._stacked(name).requires_grad_() for name, _ in coders[0].named_parameters()}
        self.buffers = {name: self._stacked(name) for name, _ in coders[0].named_buffers()}

    def _stacked(self, name: str) -> Tensor:
        own = [_tensor(coder, name) for coder in self.coders]
        stacked = torch.stack([tensor.detach() for tensor in own])
        for tensor, slice_ in zip(own, stacked, strict=True):
            tensor.data = slice_
        return stacked

    def loss(self, x: Tensor, step: Time) -> Loss:
        """Of all replicas, each part (R,), for batches x (R, B, D)."""

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], batch: Tensor) -> Loss:
            named = {f"coder.{name}": value for name, value in (parameters | buffers).items()}
            return functional_call(self._template, named, (batch, step))

        try:
            return vmap(one)(self.parameters, self.buffers, x)
        except RuntimeError as error:
            raise NotTogether(
                f"the loss of {type(self.coders[0]).__name__} cannot be batched ({_first(error)})"
            ) from error

    def groups(self) -> dict[str, list[nn.Parameter]]:
        """The stacked parameters by role, as `Coder.parameter_groups`."""
        name_of = {id(p): name for name, p in self.coders[0].named_parameters()}
        groups = self.coders[0].parameter_groups()
        return {role: [self.parameters[name_of[id(p)]] for p in own] for role, own in groups.items()}  # type: ignore[misc]

    def share_gradients(self) -> None:
        """Every coder sees its slice of the gradients, and may change it in place."""
        for name, stacked in self.parameters.items():
            for number, coder in enumerate(self.coders):
                _tensor(coder, name).grad = None if stacked.grad is None else stacked.grad[number]

    def forget_gradients(self) -> None:
        for name, stacked in self.parameters.items():
            stacked.grad = None
            for coder in self.coders:
                _tensor(coder, name).grad = None

    def release(self) -> None:
        """Every coder gets memory of its own again."""
        for name in [*self.parameters, *self.buffers]:
            for coder in self.coders:
                tensor = _tensor(coder, name)
                tensor.data = tensor.data.clone()


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
    captured: bool = False,
) -> list[Diverged | None]:
    """As `train_in_turn`, in one program; NotTogether where the loss draws samples or cannot be batched.

    With `captured`, steps on a GPU are recorded once and replayed.
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


def _tensor(coder: Coder, name: str) -> Tensor:
    *path, last = name.split(".")
    return getattr(coder.get_submodule(".".join(path)), last)


def _shapes(coder: Coder) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in [*coder.named_parameters(), *coder.named_buffers()]}


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
