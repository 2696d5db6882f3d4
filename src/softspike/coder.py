"""What every way from data to codes answers, so that one loop, one estimator and one set of measures serve all."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Generator as Random
from torch import Tensor, nn

from softspike.generator import Generator
from softspike.schedule import Time

__all__ = ["Coder", "Loss", "Trainable"]


class Loss(NamedTuple):
    """One training step's loss and the averages worth watching, all scalars on the device."""

    total: Tensor
    misfit: Tensor  # mean over batch and features of (x − x̂)²
    kl: Tensor  # mean over the batch, summed over components
    active: Tensor  # mean number of non-zero components


class Trainable(nn.Module, ABC):
    """What the loop needs of a model."""

    asks_host: bool = False  # whether a step branches on its numbers, as a solver that stops when it is done

    @abstractmethod
    def loss(self, x: Tensor, step: Time, random: Random | None = None) -> Loss:
        """What one training step minimises. Called once a step: what follows the data from batch to batch, such as a
        noise variance, moves here."""

    def before_step(self) -> None:
        """Called before each optimiser step, when gradients are there."""

    def after_step(self, step: int) -> None:
        """Called after each optimiser step, without gradients."""

    def gauges(self) -> dict[str, Tensor]:
        """Scalars of the model worth watching while it trains, beside its loss: `level` is that of its threshold."""
        return {}

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The parameters by role."""
        return {"inference": list(self.parameters())}


class Coder(Trainable):
    """x → z → x̂. Time is an argument: `loss` takes the step, and the step's own random numbers.

    x is (B, D); images are rows too, flattened in the order (height, width, channel).
    """

    generator: Generator

    @abstractmethod
    def code(self, x: Tensor) -> Tensor:
        """The deterministic code (B, d), exact zeros."""

    @abstractmethod
    def activation_probability(self, x: Tensor) -> Tensor:
        """γ = P(z ≠ 0 | x), (B, d). Coders without a posterior give a stand-in in [0, 1] and say which."""

    def code_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The code and the standard deviation of each coefficient about it, (B, d), where the coder has a posterior."""
        raise NotImplementedError(
            f"{type(self).__name__} codes come without a posterior, so they have no standard deviation; "
            "use a variational method, such as 'hard-gaussian'"
        )

    @abstractmethod
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Make codes of x have `mean_active` non-zeros on (weighted) average."""

    @property
    def counts_by_rows(self) -> bool:
        """Whether calibrating has set the count by the rows it was given: not of dense codes, nor of a fixed count."""
        return True

    def set_count(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """As much of calibrating as codes depend on: probabilities and intervals may be left as they were."""
        self.calibrate(x, mean_active, weights)

    def before_step(self) -> None:
        self.generator.project_gradient()

    def after_step(self, step: int) -> None:
        self.generator.constrain()

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The parameters by role: those of inference, and those of the generator."""
        generator = list(self.generator.parameters())
        own = {id(p) for p in generator}
        return {"inference": [p for p in self.parameters() if id(p) not in own], "generator": generator}
