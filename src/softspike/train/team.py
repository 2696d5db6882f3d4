"""The processes that train one model together: each takes its slice of every batch, and they agree on the rest."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn

from softspike.layers import BatchNorm

__all__ = ["Alone", "Processes", "Team"]

Thing = TypeVar("Thing")


class Team:
    """What the loop asks of its companions. This one is a single process: everything is already agreed on.

    The rows of a step, and their flips, are functions of (seed, step) for the *whole* batch, of which each process
    takes its slice; the noise of its samples is a function of (seed, step, rank).
    """

    rank, size = 0, 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def share(self, batch: Tensor) -> Tensor:
        """This process's slice of what belongs to the whole batch, (B, …) → (B/N, …)."""
        return batch

    @contextmanager
    def joined(self, model: nn.Module) -> Iterator[None]:
        """Inside, everyone has the leader's tensors, and batch norm sees the whole batch."""
        yield

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over processes, the gradient of the mean loss of the whole batch."""

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Called after each step with what no optimiser moves (levels, prices, statistics): take the leader's."""

    def mean(self, values: Tensor) -> Tensor:
        """The mean over processes."""
        return values

    def agree(self, said: bool) -> bool:
        """Whether any process said so."""
        return said

    def handed_out(self, make: Callable[[], Thing]) -> Thing:
        """What the leader made, on every process, or its error; only the leader needs to see the disk."""
        return make()

    def leader_first(self, make: Callable[[], Thing]) -> Thing:
        """What each made for itself, after the leader: the others find what it left in a cache."""
        return make()


class Alone(Team):
    """One process."""


class Processes(Team):
    """The processes of an initialised torch.distributed group. Use with `torchrun`; see `softspike.command.launch`.

    Batch normalisation takes its statistics over the whole batch (`softspike.layers.BatchNorm`), so N processes compute
    the gradient that one would on the joined batch, given the same noise. What a coder keeps from batch to batch
    besides (levels, prices, noise variance) is the leader's, from its slice.
    """

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def share(self, batch: Tensor) -> Tensor:
        if len(batch) % self.size:
            raise ValueError(
                f"a batch of {len(batch)} rows cannot be shared equally by {self.size} processes; "
                f"give a batch size that is a multiple of {self.size}"
            )
        return batch.chunk(self.size)[self.rank]

    @contextmanager
    def joined(self, model: nn.Module) -> Iterator[None]:
        self.follow([*(parameter.data for parameter in model.parameters()), *model.buffers()])
        norms = [module for module in model.modules() if isinstance(module, BatchNorm)]
        for norm in norms:
            norm.mean_over_ranks, norm.n_ranks = _MeanOverRanks.apply, self.size
        try:
            yield
        finally:
            for norm in norms:
                norm.mean_over_ranks, norm.n_ranks = None, 1

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        if gradients:
            flat = _joined(gradients)
            dist.all_reduce(flat)
            _put(flat.div_(self.size), gradients)

    @torch.no_grad()
    def follow(self, tensors: Iterable[Tensor]) -> None:
        followers = [tensor for tensor in tensors if tensor.is_floating_point()]
        if followers:
            flat = _joined(followers)
            dist.broadcast(flat, src=0)
            _put(flat, followers)

    def mean(self, values: Tensor) -> Tensor:
        total = values.detach().clone()
        dist.all_reduce(total)
        return total / self.size

    def agree(self, said: bool) -> bool:
        votes = torch.tensor([float(said)])
        dist.all_reduce(votes)
        return bool(votes > 0)

    def handed_out(self, make: Callable[[], Thing]) -> Thing:
        box: list[Any] = [None, None]  # what was made, or what went wrong
        if self.leads:
            try:
                box[0] = make()
            except (ValueError, OSError) as error:
                box[1] = error
        dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        if box[1] is not None:
            raise box[1]
        return box[0]

    def leader_first(self, make: Callable[[], Thing]) -> Thing:
        made: list[Thing] = []
        self.handed_out(lambda: made.append(make()))
        return made[0] if made else make()


def _joined(tensors: list[Tensor]) -> Tensor:
    """All in one message: many small ones would cost their latency each."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _put(flat: Tensor, tensors: list[Tensor]) -> None:
    for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
        tensor.copy_(part.view(tensor.shape))


class _MeanOverRanks(torch.autograd.Function):
    """y = (1/N)·Σᵣ xᵣ on every process; backwards, each receives the mean of all gradients by y."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        total = x.clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        total = grads[0].contiguous().clone()
        dist.all_reduce(total)
        return total / dist.get_world_size()
