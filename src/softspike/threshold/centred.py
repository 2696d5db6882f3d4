"""The soft-threshold centred at zero: the same shrinkage, a support that the location decides."""

from torch import Tensor

from softspike.threshold.functions import soft_threshold
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import lower_partial_moments, upper_partial_moments

__all__ = ["CentredSoft"]


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
