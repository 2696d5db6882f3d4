"""One training step: from a batch to moved parameters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn
from torch.optim import Optimizer

from softspike.coder import Loss, Trainable
from softspike.schedule import Time
from softspike.train.order import step_random
from softspike.train.precision import Float16, Precision
from softspike.train.recipe import Recipe
from softspike.train.team import Alone, Team

__all__ = ["Step"]


@dataclass
class Step:
    """Loss, gradients, clipping, descent. A call does the step with the rates and random numbers that belong to it."""

    coder: Trainable
    optimizer: Optimizer
    recipe: Recipe
    seed: int
    device: torch.device
    precision: Precision
    team: Team

    def __post_init__(self) -> None:
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.steered = _others(self.coder.parameters(), self.parameters)  # by the coder itself
        self.seeds: Sequence[int] = (self.seed,)

    def __call__(self, x: Tensor, step: int) -> Loss:
        self.recipe.set_rates(self.optimizer, step)
        return self.descend(x, step, step_random(self.seed, step, self.device, self.team.rank))

    def random(self) -> Generator:
        return Generator(device=self.device)

    @property
    def others_ask_host(self) -> bool:
        """Whether something besides the coder asks the host: other processes, or a loss that is scaled."""
        return not isinstance(self.team, Alone) or isinstance(self.precision, Float16)

    def descend(self, x: Tensor, time: Time, random: Generator) -> Loss:
        """All that happens on the device; the time may be a number there."""
        with self.precision.lowered(self.device):
            loss = self.coder.loss(x, time, random)
        for parameter in (*self.parameters, *self.steered):
            parameter.grad = None
        self.precision.backward(loss.total)
        self.team.average_gradients(self.coder.parameters())
        self.precision.unscale(self.optimizer, self.steered)
        self.coder.before_step()
        if self.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.recipe.clip_norm)
        self.precision.step(self.optimizer)
        return Loss(*(value.detach() for value in loss))


def _others(parameters: Iterable[nn.Parameter], optimised: list[nn.Parameter]) -> list[nn.Parameter]:
    """Those that no optimiser moves."""
    own = {id(parameter) for parameter in optimised}
    return [parameter for parameter in parameters if id(parameter) not in own]
