"""Many coders as one: their parameters and buffers stacked, their losses in one batched pass (`torch.func.vmap`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Generator, Tensor, nn
from torch.func import functional_call, vmap

from softspike.coder import Coder, Loss
from softspike.schedule import Time
from softspike.train.alike import difference
from softspike.train.together import NotTogether

__all__ = ["Stack"]


class _LossOf(nn.Module):
    """A coder whose forward pass is its loss: what `functional_call` can call."""

    def __init__(self, coder: Coder):
        super().__init__()
        self.coder = coder

    def forward(self, x: Tensor, step: Time, random: Generator | None) -> Loss:
        return self.coder.loss(x, step, random)


class Stack:
    """Coders whose parameters and buffers are slices of stacked tensors (R, …): what one sees, the other sees."""

    def __init__(self, coders: Sequence[Coder]):
        self.coders, self._template = coders, _LossOf(coders[0])
        if coders[0].asks_host:
            raise NotTogether(f"how far a step of {type(coders[0]).__name__} goes depends on its numbers")
        if any(_shapes(coder) != _shapes(coders[0]) for coder in coders):
            raise NotTogether("the coders differ in their parameters; replicas share all shapes, and what is learned")
        for coder in coders[1:]:  # one stands for all: what is no tensor is read from it
            if (unlike := difference(coders[0], coder)) is not None:
                raise NotTogether(f"the coders differ in their settings ({unlike})")
        self.parameters = {
            name: self._stacked(name).requires_grad_(own.requires_grad) for name, own in coders[0].named_parameters()
        }
        self.buffers = {name: self._stacked(name) for name, _ in coders[0].named_buffers()}

    def _stacked(self, name: str) -> Tensor:
        own = [_tensor(coder, name) for coder in self.coders]
        stacked = torch.stack([tensor.detach() for tensor in own])
        for tensor, slice_ in zip(own, stacked, strict=True):
            tensor.data = slice_
        return stacked

    def loss(self, x: Tensor, step: Time, random: Generator | None = None) -> Loss:
        """Of all replicas, each part (R,), for batches x (R, B, D); `random` is a `softspike.posterior.Generators`."""

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], batch: Tensor) -> Loss:
            named = {f"coder.{name}": value for name, value in (parameters | buffers).items()}
            return functional_call(self._template, named, (batch, step, random))

        return vmap(one)(self.parameters, self.buffers, x)

    @contextmanager
    def tried(self) -> Iterator[None]:
        """For a first loss and its gradient: NotTogether, with buffers as they were, where they are impossible."""
        before = {name: buffer.clone() for name, buffer in self.buffers.items()}
        try:
            yield
        except RuntimeError as error:  # vmap has no rule for something, or there is not enough memory
            for name, buffer in self.buffers.items():
                buffer.copy_(before[name])
            what = f"the loss of {type(self.coders[0]).__name__} cannot be batched ({_first(error)})"
            raise NotTogether(what) from error

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


def _tensor(coder: Coder, name: str) -> Tensor:
    *path, last = name.split(".")
    return getattr(coder.get_submodule(".".join(path)), last)


def _shapes(coder: Coder) -> dict[str, tuple[torch.Size, bool]]:
    named = [*coder.named_parameters(), *coder.named_buffers()]
    return {name: (value.shape, value.requires_grad) for name, value in named}


def _first(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")
