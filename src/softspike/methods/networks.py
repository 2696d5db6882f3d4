"""The networks that the sampled methods can be built on: a dictionary behind a perceptron, or convolutions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch.optim import Adam

from softspike.encoder import ConvEncoder, Encoder, MLPEncoder
from softspike.generator import ConvGenerator, Dictionary, Generator
from softspike.layers import ImageShape
from softspike.methods.plan import Networks, Plan, adam_recipe
from softspike.schedule import OneCycle, Schedule
from softspike.train import AsItIs, GroupRecipe, Mirrored, Recipe

__all__ = ["ConvNetworks", "LinearNetworks"]


@dataclass(frozen=True)
class LinearNetworks(Networks):
    """The paper's linear study: x → 512 → 1024 → 512 → 256, and a dictionary."""

    def encoder(self, plan: Plan) -> Encoder:
        return MLPEncoder(plan.n_features)

    def generator(self, plan: Plan) -> Generator:
        return Dictionary(plan.n_features, plan.n_components)

    def recipe(self, plan: Plan) -> Recipe:
        return adam_recipe(plan, 3e-4, 3e-3)


@dataclass(frozen=True)
class ConvNetworks(Networks):
    """The paper's deep study: convolutions for square images with pixels in [0, 1], trained by one Adam step for both.

    `mirrored` turns each training image left to right with probability ½, anew in every epoch, as for faces. The
    learning rate rises to 1e-3 and falls to 0 unless a `rate` is given; the paper's is `Constant(3e-4)`.
    """

    gives_shares: ClassVar[bool] = True

    image_shape: Sequence[int]  # (size, size[, channels])
    mirrored: bool = False
    rate: Schedule | None = None

    def encoder(self, plan: Plan) -> Encoder:
        return ConvEncoder(self.image_shape)

    def generator(self, plan: Plan) -> Generator:
        return ConvGenerator(self.image_shape, plan.n_components)

    def recipe(self, plan: Plan) -> Recipe:
        """Adam(0.5, 0.999) with weight decay 1e-5, nothing clipped."""
        rate = self.rate or OneCycle(plan.learning_rate or 1e-3, plan.n_steps, rise=0.1, end=0.0)
        group = GroupRecipe(rate, {"betas": (0.5, 0.999), "weight_decay": 1e-5})
        return Recipe(
            plan.n_steps, plan.batch_size, partial(Adam, fused=True), {"inference": group, "generator": group},
            augment=Mirrored(ImageShape.of(self.image_shape)) if self.mirrored else AsItIs(),
        )  # fmt: skip
