"""How gradients pass the threshold. The forward value is the same in all three; only the backward pass differs."""

from abc import ABC, abstractmethod

from torch import Tensor

from softspike.threshold.law import ThresholdedLaw

__all__ = ["SLOPES", "DoubledStraightThrough", "StraightThrough", "Subgradient", "ThresholdGradient"]


class ThresholdGradient(ABC):
    """Turns a draw s of a law's base into z = T(s; λ), with a chosen backward pass."""

    @abstractmethod
    def __call__(self, law: ThresholdedLaw, s: Tensor) -> Tensor: ...


class StraightThrough(ThresholdGradient):
    """z̃ = s + T(sg[s]; λ, sg[μ]) − sg[s]: dz/ds = 1 everywhere, so dz/dμ = 1; the gradient to a learned λ is kept."""

    def __call__(self, law: ThresholdedLaw, s: Tensor) -> Tensor:
        return _through(law, s)


class DoubledStraightThrough(ThresholdGradient):
    """As the published scripts: μ stays attached in 1[active]·μ, so dz/dμ = 2 on active units and 1 elsewhere."""

    def __call__(self, law: ThresholdedLaw, s: Tensor) -> Tensor:
        z = _through(law, s)
        location = law.base.loc
        return z + (z != 0) * (location - location.detach())


class Subgradient(ThresholdGradient):
    """The true subgradient: nothing flows where z = 0; dz/dμ = 1 and dz/dλ = −sign(noise) where z ≠ 0."""

    def __call__(self, law: ThresholdedLaw, s: Tensor) -> Tensor:
        return law.transform(s)


def _through(law: ThresholdedLaw, s: Tensor) -> Tensor:
    fixed = type(law.base)(law.base.loc.detach(), law.base.scale.detach(), validate_args=False)
    z = type(law)(fixed, law.level, validate_args=False).transform(s.detach())
    # (s − sg[s]) is exactly 0 in the forward pass, so exact zeros stay exact.
    return z + (s - s.detach())


# Of each: dz/dμ on active units, and dz/ds on silent ones. On active ones dz/ds is 1; on silent ones dz/dμ is dz/ds.
SLOPES: dict[type[ThresholdGradient], tuple[float, float]] = {
    StraightThrough: (1.0, 1.0),
    DoubledStraightThrough: (2.0, 1.0),
    Subgradient: (1.0, 0.0),
}
