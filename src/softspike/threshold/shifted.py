"""The shifted soft-threshold: the paper's law, whose support the noise decides."""

import torch
from torch import Tensor

from softspike.threshold.functions import shifted_soft_threshold
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import Base, upper_partial_moments

__all__ = ["ShiftedSoft"]


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
