"""The threshold level λ: fixed, or a Gamma variable inferred from the input."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.distributions import Distribution, Gamma, Laplace, Normal, kl_divergence

from softspike.threshold.activity import activity_under_gamma
from softspike.threshold.law import ThresholdedLaw

__all__ = ["FixedLevel", "GammaLevel", "Level", "level_for_activity"]

# The published clamp of the Gamma parameters: wide enough never to bind in a healthy run, finite where one goes wrong.
_LOG_RANGE = (math.log(1e-6), math.log(1e6))


def level_for_activity(prior: Distribution, activity: float) -> float:
    """The λ₀ at which the thresholded *prior* is active with probability p: P(|s| > λ₀) = p.

    Laplace(0, b₀): −b₀·log p.  Normal(0, σ₀²): σ₀·Φ⁻¹(1 − p/2).
    """
    if not 0 < activity <= 1:
        raise ValueError(f"activity is {activity}, expected a probability in (0, 1]")
    p = torch.as_tensor(activity, dtype=torch.float64)
    if isinstance(prior, Laplace):
        return float(-prior.scale * p.log())
    if isinstance(prior, Normal):
        return float(prior.scale * torch.special.ndtri(1 - p / 2))
    raise TypeError(f"no analytic level is known for a {type(prior).__name__} prior; give the level as a number")


class Level(nn.Module, ABC):
    """λ, as a number or as a law q(λ|x)."""

    value: Tensor  # λ, where it is a number

    def forward(self, h: Tensor) -> Gamma | None:
        """q(λ|x), or None where there is no law to draw from."""
        return None

    @abstractmethod
    def typical(self, h: Tensor) -> Tensor:
        """The level that the deterministic code uses."""

    def kl(self, law: Gamma | None) -> Tensor:
        """KL(q(λ|x) ‖ p(λ)) summed over features, (B,); 0 where λ is a number."""
        return torch.zeros(())

    def log_ratio(self, law: Gamma, level: Tensor) -> Tensor:
        """log p(λ) − log q(λ|x) of each feature."""
        raise TypeError(f"{type(self).__name__} draws no levels")

    def activation_probability(self, law: ThresholdedLaw, h: Tensor) -> Tensor:
        """γ with the level's own uncertainty averaged out."""
        return law.activation_probability


class FixedLevel(Level):
    """λ = λ₀ for every feature and input."""

    def __init__(self, value: float):
        super().__init__()
        if not value >= 0:
            raise ValueError(f"level is {value}, expected a number ≥ 0")
        self.register_buffer("value", torch.tensor(float(value)))

    def typical(self, h: Tensor) -> Tensor:
        return self.value


class GammaLevel(Level):
    """λ ~ Gamma(α(x), β(x)) per feature, prior Gamma(α₀, α₀/λ₀) with mean λ₀."""

    prior_concentration: Tensor
    prior_rate: Tensor

    def __init__(self, width: int, n_components: int, mean: float, shape: float = 3.0):
        super().__init__()
        if not (mean > 0 and shape > 0):
            raise ValueError(f"the Gamma prior has mean {mean} and shape {shape}, expected both > 0")
        self.log_concentration = nn.Linear(width, n_components)
        self.log_rate = nn.Linear(width, n_components)
        self.register_buffer("prior_concentration", torch.tensor(float(shape)))
        self.register_buffer("prior_rate", torch.tensor(float(shape / mean)))

    @property
    def prior(self) -> Gamma:
        return Gamma(self.prior_concentration, self.prior_rate, validate_args=False)

    def forward(self, h: Tensor) -> Gamma:
        # Clamped before exp, which gives the same values: a head that overflows exp would turn the gradient into NaN.
        concentration = self.log_concentration(h).clamp(*_LOG_RANGE).exp()
        rate = self.log_rate(h).clamp(*_LOG_RANGE).exp()
        return Gamma(concentration, rate, validate_args=False)

    def kl(self, law: Gamma | None) -> Tensor:
        """KL(Gamma(α, β) ‖ Gamma(α₀, β₀)) summed over features, (B,)."""
        assert law is not None
        return kl_divergence(law, self.prior.expand(law.batch_shape)).sum(-1)

    def typical(self, h: Tensor) -> Tensor:
        """The mean level α/β."""
        return self(h).mean

    def log_ratio(self, law: Gamma, level: Tensor) -> Tensor:
        return self.prior.log_prob(level) - law.log_prob(level)

    def activation_probability(self, law: ThresholdedLaw, h: Tensor) -> Tensor:
        return activity_under_gamma(law, self(h))
