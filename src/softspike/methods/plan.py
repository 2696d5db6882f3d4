"""What a method is built from, and what building one gives."""

from dataclasses import dataclass
from typing import NamedTuple

from torch.optim import Adam

from softspike.coder import Coder
from softspike.schedule import OneCycle
from softspike.train import GroupRecipe, Recipe

__all__ = ["Built", "Plan", "adam_recipe"]

_PUBLISHED_STEPS = 240_000


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
    beta: float = 1e-2

    @property
    def target_active(self) -> float:
        """The target as a mean count."""
        return self.activity * self.n_components

    @property
    def pace(self) -> float:
        """This plan's length in published schedules; warm-ups shrink with it."""
        return self.n_steps / _PUBLISHED_STEPS


class Built(NamedTuple):
    coder: Coder
    recipe: Recipe


def adam_recipe(plan: Plan, rate: float, generator_rate: float) -> Recipe:
    """Adam with the published one-cycle schedule, one peak for inference and one for the generator."""
    rates = {"inference": plan.learning_rate or rate, "generator": plan.learning_rate or generator_rate}
    groups = {name: GroupRecipe(OneCycle(peak, plan.n_steps)) for name, peak in rates.items()}
    return Recipe(plan.n_steps, plan.batch_size, Adam, groups, clip_norm=1.0)
