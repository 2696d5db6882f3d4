"""The laws of thresholded variables: a point mass at exactly 0 and a density elsewhere."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

from softspike.threshold.partial import (
    Base,
    log_inside,
    log_outside,
    lower_partial_moments,
    upper_partial_moments,
)

__all__ = ["ThresholdedLaw"]


class ThresholdedLaw(Distribution):
    """z = T(s; λ) with s from a symmetric base law.

    `log_prob` is with respect to the mixed measure δ₀ + Lebesgue: log P(z = 0) at zero, the log density elsewhere.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"level": constraints.nonnegative}
    support = constraints.real
    has_rsample = True

    def __init__(self, base: Base, level: Tensor | float, validate_args: bool | None = None):
        loc, scale, self.level = broadcast_all(base.loc, base.scale, level)
        self.base: Base = type(base)(loc, scale, validate_args=False)
        super().__init__(loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "ThresholdedLaw":
        return type(self)(self.base.expand(batch_shape), self.level.expand(batch_shape), validate_args=False)

    @abstractmethod
    def transform(self, s: Tensor) -> Tensor:
        """T(s; λ): from a draw of the base to a draw of this law."""

    @abstractmethod
    def log_density(self, z: Tensor) -> Tensor:
        """The log density at z ≠ 0."""

    @property
    def compared(self) -> Base:
        """The law of the variable r whose size is compared with λ: s itself, unless a law says otherwise."""
        return self.base

    @property
    def activation_probability(self) -> Tensor:
        """γ = P(z ≠ 0) = P(|r| > λ)."""
        r = self.compared
        above, below = upper_partial_moments(r, self.level), lower_partial_moments(r, -self.level)
        return (above.probability + below.probability).clamp(0, 1)

    @property
    def log_activation(self) -> Tensor:
        """log γ, accurate where γ rounds to 0."""
        return log_outside(self.compared, self.level)

    @property
    def log_silence(self) -> Tensor:
        """log P(z = 0) = log(1 − γ), accurate where γ rounds to 1 and finite where it is 1."""
        return log_inside(self.compared, self.level)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:
        return self.transform(self.base.rsample(Size(sample_shape)))

    def log_prob(self, z: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(z)
        return torch.where(z == 0, self.log_silence, self.log_density(z))

    @property
    def variance(self) -> Tensor:
        return (self.second_moment - self.mean.square()).clamp_min(0)

    @property
    @abstractmethod
    def second_moment(self) -> Tensor:
        """E[z²]."""

    @property
    def score(self) -> Tensor:
        """What decides the support of the deterministic code: active where the score exceeds 1, |μ| > λ."""
        return self.base.loc.abs() / self.level.clamp_min(torch.finfo(self.level.dtype).tiny)

    def code(self, cut: Tensor | float = 1.0) -> Tensor:
        """The deterministic code: T at s = μ, with the level scaled by `cut`."""
        return type(self)(self.base, self.level * cut, validate_args=False).transform(self.base.loc)
