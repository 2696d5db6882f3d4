"""A training step as one launch: on a GPU the host no longer sets the pace."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.optim import Optimizer

from softspike.coder import Loss, Trainable
from softspike.notice import notice
from softspike.posterior import each_of
from softspike.schedule import Time
from softspike.train.order import step_seed
from softspike.train.recipe import Recipe

__all__ = ["WORTH", "CapturedStep", "Recordable", "capturable"]

_WARM_UP = 3  # steps launched one kernel at a time: libraries choose algorithms and optimisers make their state
WORTH = 50  # steps, for fewer of which recording takes longer than it saves


class Recordable(Protocol):
    """A step in two parts: what the host decides, and what then happens on the device."""

    coder: Trainable
    optimizer: Optimizer
    recipe: Recipe
    seeds: Sequence[int]  # of one model, or of each replica
    device: torch.device

    def random(self) -> Generator:
        """The generator that a step draws from; it is seeded before every step."""
        ...

    def descend(self, x: Tensor, time: Time, random: Generator) -> Loss: ...


def capturable(step: Recordable, n_steps: int) -> bool:
    """Whether so many steps can be one launch each, and gain by it: on a GPU, and nothing in them asks the host."""
    optimizers = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
    return (
        n_steps >= WORTH
        and step.device.type == "cuda"
        and not step.coder.asks_host
        and type(step.optimizer) in optimizers
    )


class CapturedStep:
    """The same step, recorded once as a CUDA graph and replayed.

    What changes from step to step is read from the device: the batch, the time, the learning rates, and the seed of the
    random numbers, so that replayed steps draw what single ones would. Where recording fails, a warning says why and
    steps go on one kernel at a time.
    """

    def __init__(self, step: Recordable):
        self.step, self.done = step, 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.given_up = False
        self.time = torch.zeros((), dtype=torch.float64, device=step.device)
        self.random = step.random()
        for group in step.optimizer.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=step.device)
            group |= {"fused": True, "foreach": False}  # one kernel for all, which reads its rate from the device
            if "capturable" in group:  # Adam's word for it
                group["capturable"] = True
        for slots in step.optimizer.state.values():  # of a run that goes on: such a kernel counts on the device, too
            if "step" in slots:
                slots["step"] = slots["step"].to(step.device, torch.float32)

    def __call__(self, x: Tensor, number: int) -> Loss:
        self._prepare(x, number)
        if self.graph is None and self.done >= _WARM_UP and not self.given_up:
            self._record()
        if self.graph is not None:
            self.graph.replay()
        else:
            self._aside()
        self.done += 1
        return Loss(*self.losses.clone().unbind())

    def _prepare(self, x: Tensor, number: int) -> None:
        step = self.step
        for group in step.optimizer.param_groups:
            group["lr"].fill_(step.recipe.groups[group["name"]].rate(number))
        self.time.fill_(number)
        self.number = number
        self._seed()
        if self.done == 0:
            self.x = torch.empty_like(x)
        self.x.copy_(x)

    def _seed(self) -> None:
        for generator, seed in zip(each_of(self.random), self.step.seeds, strict=True):
            generator.manual_seed(step_seed(seed, self.number))

    def _aside(self) -> None:
        """Kernel by kernel, on a stream of its own: gradients that were made elsewhere could not be recorded."""
        stream = torch.cuda.Stream(self.step.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            loss = self.step.descend(self.x, self.number, self.random)
            self.losses = torch.stack([value.float() for value in loss])
        torch.cuda.current_stream().wait_stream(stream)

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        for generator in each_of(self.random):
            graph.register_generator_state(generator)
        try:
            with torch.cuda.graph(graph):
                loss = self.step.descend(self.x, self.time, self.random)
                self.losses = torch.stack([value.float() for value in loss])
        except RuntimeError as error:
            self.given_up = True
            self.random = self.step.random()
            self._seed()
            reason = str(error).splitlines()[0]
            notice(f"training steps are launched kernel by kernel, several times slower: {reason}")
        else:
            self.graph = graph
