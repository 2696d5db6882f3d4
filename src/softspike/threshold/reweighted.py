"""A thresholded law whose probability of being active is put right."""

from typing import Any, ClassVar, TypeGuard

import torch
from torch import Size, Tensor
from torch.distributions import Distribution, Normal, constraints

from softspike.threshold.hard import Hard, PositiveHard
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import log_survival, reflected

__all__ = ["Reweighted"]


class Reweighted(Distribution):
    """(1 − p)·δ₀ + p·q(z | z ≠ 0): the hard-thresholded Gaussian q with p in place of its own γ.

    E z = p·E_q[z]/γ and E z² = p·E_q[z²]/γ; where γ rounds to 0, what survives lies at the level, E_q[|z|]/γ → λ.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"probability": constraints.unit_interval}
    support = constraints.real
    has_rsample = True

    def __init__(self, law: ThresholdedLaw, probability: Tensor, validate_args: bool | None = None):
        if not self.possible(law):
            given = f"{type(law).__name__} over {type(law.base).__name__}"
            raise TypeError(f"only a hard threshold over a Normal base can be reweighted, this law is a {given}")
        self.law, self.probability = law, probability.expand(law.batch_shape)
        super().__init__(law.batch_shape, validate_args=validate_args)

    @staticmethod
    def possible(law: Distribution) -> TypeGuard[Hard | PositiveHard]:
        """Whether this law can be reweighted: draws of z | z ≠ 0 are known for hard thresholds of a Gaussian."""
        return isinstance(law, Hard | PositiveHard) and isinstance(law.base, Normal)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "Reweighted":
        return Reweighted(self.law.expand(batch_shape), self.probability.expand(batch_shape), validate_args=False)

    @property
    def activation_probability(self) -> Tensor:
        """p = P(z ≠ 0)."""
        return self.probability

    def log_prob(self, z: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(z)
        limits = torch.finfo(self.probability.dtype)  # finite even where p is 0 or 1
        elsewhere = self.probability.clamp_min(limits.tiny).log() + self.law.log_density(z) - self.law.log_activation
        return torch.where(z == 0, torch.log1p(-self.probability.clamp_max(1 - limits.eps)), elsewhere)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:
        """Active with probability p, then a draw of the tail beyond ±λ by its inverse distribution function."""
        base, level, shape = self.law.base, self.law.level, Size(sample_shape) + self.batch_shape
        chance, side, height = torch.rand((3, *shape), dtype=torch.float64, device=base.loc.device)
        above = torch.ones_like(chance)
        if not isinstance(self.law, PositiveHard):
            odds = log_survival(base, level) - log_survival(reflected(base), level)
            above = torch.where(side < odds.double().sigmoid(), 1.0, -1.0)
        loc, scale = above * base.loc.double(), base.scale.double()
        beyond = torch.special.ndtr((loc - level.double()) / scale) * height
        size = (loc - scale * torch.special.ndtri(beyond.clamp_min(1e-300))).to(level.dtype)
        size = size.maximum(torch.nextafter(level, torch.full_like(level, torch.inf)))
        return torch.where(chance < self.probability, above.to(level.dtype) * size, 0.0)

    @property
    def mean(self) -> Tensor:
        return self.probability * self._given_active(self.law.mean, self.law.base.loc.sign() * self.law.level)

    @property
    def second_moment(self) -> Tensor:
        """E[z²]."""
        return self.probability * self._given_active(self.law.second_moment, self.law.level.square())

    @property
    def variance(self) -> Tensor:
        return (self.second_moment - self.mean.square()).clamp_min(0)

    def _given_active(self, moment: Tensor, limit: Tensor) -> Tensor:
        """E_q[·]/γ, or its limit as γ → 0."""
        gamma = self.law.activation_probability
        smallest = torch.finfo(gamma.dtype).tiny / torch.finfo(gamma.dtype).eps
        return torch.where(gamma > smallest, moment / gamma.clamp_min(smallest), limit)

    @property
    def score(self) -> Tensor:
        return self.law.score

    def code(self, cut: Tensor | float = 1.0) -> Tensor:
        return self.law.code(cut)
