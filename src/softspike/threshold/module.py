"""The threshold stage of a model: which law, at which level, with which gradient."""

from torch import Tensor, nn
from torch.distributions import Distribution, Gamma

from softspike.posterior import place
from softspike.threshold.gradient import StraightThrough, ThresholdGradient
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.level import Level

__all__ = ["Threshold"]


class Threshold(nn.Module):
    """z = T(s; λ): `Threshold(ShiftedSoft, FixedLevel(0.25))` is the paper's."""

    def __init__(self, law: type[ThresholdedLaw], level: Level, gradient: ThresholdGradient | None = None):
        super().__init__()
        self.law_type, self.level = law, level
        self.gradient = gradient if gradient is not None else StraightThrough()

    def law(self, base: Distribution, level: Tensor) -> ThresholdedLaw:
        """The law of z when the level is known."""
        return self.law_type(base, level, validate_args=False)

    def draw_level(self, level_law: Gamma | None, level_noise: Tensor | None) -> Tensor:
        """λ, fixed or (J, B, d)."""
        if level_law is None or level_noise is None:
            return self.level.value
        return place(level_law, level_noise)
