"""The processes that train one model together: each takes its slice of every batch, and they agree on the rest."""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from softspike.layers import BatchNorm

__all__ = ["Alone", "Processes", "Team"]


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

    def join(self, model: nn.Module) -> None:
        """Called once before training: everyone starts from the leader's tensors."""

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its mean over processes, the gradient of the mean loss of the whole batch."""

    def follow(self, tensors: Iterable[Tensor]) -> None:
        """Called after each step with what no optimiser moves (levels, prices, statistics): take the leader's."""

    def mean(self, values: Tensor) -> Tensor:
        """The mean over processes."""
        return values

    def wait(self) -> None:
        """Until all have come here."""


class Alone(Team):
    """One process."""


class Processes(Team):
    """The processes of an initialised torch.distributed group. Use with `torchrun`; see `softspike.launch`.

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

    def join(self, model: nn.Module) -> None:
        for tensor in (*model.parameters(), *model.buffers()):
            dist.broadcast(tensor.data, src=0)
        for module in model.modules():
            if isinstance(module, BatchNorm):
                module.mean_over_ranks, module.n_ranks = _MeanOverRanks.apply, self.size

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

    def wait(self) -> None:
        dist.barrier()


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
