"""The laws of thresholded variables: a point mass at exactly 0 and a density elsewhere."""

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import broadcast_all

from softspike.threshold.functions import hard_threshold, shifted_soft_threshold, soft_threshold
from softspike.threshold.partial import (
    Base,
    log_inside,
    log_outside,
    log_survival,
    lower_partial_moments,
    reflected,
    upper_partial_moments,
)

__all__ = ["CentredSoft", "Hard", "PositiveHard", "ShiftedSoft", "ThresholdedLaw"]


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


class ShiftedSoft(ThresholdedLaw):
    """The paper's law: the soft-threshold acts on the noise s − μ.

    γ = P(|s−μ| > λ);  density f(z + sign(z−μ)·λ);  E z = γμ;  E z² = γμ² + 2E[(s−μ−λ)₊²].
    For a Laplace base this is exactly γ·Laplace(μ, b) + (1−γ)·δ₀ with γ = exp(−λ/b).
    """

    def transform(self, s: Tensor) -> Tensor:
        return shifted_soft_threshold(s, self.level, self.base.loc)

    def log_density(self, z: Tensor) -> Tensor:
        # At z = μ both sides of the gap meet: either sign gives the same density.
        side = torch.where(z >= self.base.loc, 1.0, -1.0)
        return self.base.log_prob(z + side * self.level)

    @property
    def compared(self) -> Base:
        """The noise s − μ."""
        return type(self.base)(torch.zeros_like(self.base.loc), self.base.scale, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.activation_probability * self.base.loc

    @property
    def second_moment(self) -> Tensor:
        return self.activation_probability * self.base.loc.square() + self._kept_noise

    @property
    def variance(self) -> Tensor:
        """2E[(s−μ−λ)₊²] + γ(1−γ)μ²: nothing cancels where μ ≫ σ."""
        gamma = self.activation_probability
        return self._kept_noise + gamma * (1 - gamma) * self.base.loc.square()

    @property
    def _kept_noise(self) -> Tensor:
        return 2 * upper_partial_moments(self.compared, self.level).square

    @property
    def score(self) -> Tensor:
        """γ: without noise every z is 0, so the code keeps the features most probably active."""
        return self.activation_probability

    def code(self, cut: Tensor | float = 0.5) -> Tensor:
        """E[z | z ≠ 0] = μ where γ exceeds the cut."""
        return self.base.loc * (self.score > cut)


class CentredSoft(ThresholdedLaw):
    """The soft-threshold at zero, z = sign(s)·max(|s|−λ, 0).

    γ = P(|s| > λ);  density f(z + sign(z)·λ);  E z = E(s−λ)₊ − E(−λ−s)₊;  E z² = E(s−λ)₊² + E(−λ−s)₊².
    """

    def transform(self, s: Tensor) -> Tensor:
        return soft_threshold(s, self.level)

    def log_density(self, z: Tensor) -> Tensor:
        return self.base.log_prob(z + z.sign() * self.level)

    @property
    def mean(self) -> Tensor:
        above, below = upper_partial_moments(self.base, self.level), lower_partial_moments(self.base, -self.level)
        return above.mean - below.mean

    @property
    def second_moment(self) -> Tensor:
        above, below = upper_partial_moments(self.base, self.level), lower_partial_moments(self.base, -self.level)
        return above.square + below.square


class Hard(ThresholdedLaw):
    """The hard threshold at zero, z = s·1[|s| > λ]: what survives is not shrunk, and no value lies in 0 < |z| ≤ λ.

    γ = P(|s| > λ);  density f(z) for |z| > λ;  E[s; s>λ] = E(s−λ)₊ + λP(s>λ) and its mirror image give the moments.
    """

    def transform(self, s: Tensor) -> Tensor:
        return hard_threshold(s, self.level)

    def log_density(self, z: Tensor) -> Tensor:
        return torch.where(z.abs() > self.level, self.base.log_prob(z), -torch.inf)

    @property
    def mean(self) -> Tensor:
        above, below = upper_partial_moments(self.base, self.level), lower_partial_moments(self.base, -self.level)
        return above.mean - below.mean + self.level * (above.probability - below.probability)

    @property
    def second_moment(self) -> Tensor:
        above, below = upper_partial_moments(self.base, self.level), lower_partial_moments(self.base, -self.level)
        beyond = above.square + below.square + 2 * self.level * (above.mean + below.mean)
        return beyond + self.level.square() * (above.probability + below.probability)


class PositiveHard(ThresholdedLaw):
    """The one-sided hard threshold, z = s·1[s > λ]: non-negative codes.

    γ = P(s > λ);  density f(z) for z > λ;  E z = E(s−λ)₊ + λγ;  E z² = E(s−λ)₊² + 2λE(s−λ)₊ + λ²γ.
    """

    def transform(self, s: Tensor) -> Tensor:
        return s * (s > self.level)

    def log_density(self, z: Tensor) -> Tensor:
        return torch.where(z > self.level, self.base.log_prob(z), -torch.inf)

    @property
    def activation_probability(self) -> Tensor:
        return upper_partial_moments(self.base, self.level).probability

    @property
    def log_activation(self) -> Tensor:
        return log_survival(self.base, self.level)

    @property
    def log_silence(self) -> Tensor:
        return log_survival(reflected(self.base), -self.level)

    @property
    def mean(self) -> Tensor:
        above = upper_partial_moments(self.base, self.level)
        return above.mean + self.level * above.probability

    @property
    def second_moment(self) -> Tensor:
        above = upper_partial_moments(self.base, self.level)
        return above.square + 2 * self.level * above.mean + self.level.square() * above.probability

    @property
    def score(self) -> Tensor:
        """μ/λ: active where μ > λ."""
        return self.base.loc / self.level.clamp_min(torch.finfo(self.level.dtype).tiny)
