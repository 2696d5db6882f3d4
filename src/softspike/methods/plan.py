"""What a method is built from, and what building one gives."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch.optim import Adam

from softspike.coder import Coder
from softspike.encoder import Encoder
from softspike.generator import Generator
from softspike.schedule import OneCycle
from softspike.train import GroupRecipe, Recipe

__all__ = ["Built", "Networks", "Plan", "adam_recipe"]


class Networks(ABC):
    """The encoder and generator of a method that is free to have any, and how they are trained."""

    gives_shares: ClassVar[bool] = False  # as the generator's: data in [0, 1] that is not standardised

    @abstractmethod
    def encoder(self, plan: "Plan") -> Encoder: ...

    @abstractmethod
    def generator(self, plan: "Plan") -> Generator: ...

    @abstractmethod
    def recipe(self, plan: "Plan") -> Recipe: ...


@dataclass(frozen=True)
class Plan:
    """The numbers a method is built from."""

    n_features: int
    n_components: int
    activity: float  # target share of active components
    n_steps: int
    batch_size: int
    n_samples: int = 20  # J, for the methods that sample
    learning_rate: float | None = None  # None: the method's own
    positive: bool = False
    encoder_steps: int = 5  # unrolled steps, for the method that unrolls
    correction_rounds: int = 20  # in which its supports are corrected
    dictionary_refits: int = 200  # of its atoms to corrected codes, after training
    beta: float = 1e-2
    networks: Networks | None = None  # None: the method's own
    published_steps: int = 240_000  # the length of the schedule that warm-ups were published for

    @property
    def target_active(self) -> float:
        """The target as a mean count."""
        return self.activity * self.n_components

    @property
    def pace(self) -> float:
        """This plan's length in published schedules; warm-ups shrink with it."""
        return self.n_steps / self.published_steps


class Built(NamedTuple):
    coder: Coder
    recipe: Recipe


def adam_recipe(plan: Plan, rate: float, generator_rate: float) -> Recipe:
    """Adam with the published one-cycle schedule, one peak for inference and one for the generator."""
    rates = {"inference": plan.learning_rate or rate, "generator": plan.learning_rate or generator_rate}
    groups = {name: GroupRecipe(OneCycle(peak, plan.n_steps)) for name, peak in rates.items()}
    return Recipe(plan.n_steps, plan.batch_size, Adam, groups, clip_norm=1.0)
