"""The hard thresholds, two-sided and one-sided: what survives is not shrunk."""

import torch
from torch import Tensor

from softspike.threshold.functions import hard_threshold
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import log_survival, lower_partial_moments, reflected, upper_partial_moments

__all__ = ["Hard", "PositiveHard"]


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
