"""q(s|x) = N(μ(x), σᵢ²): the encoder gives the location itself, each component has one width."""

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from softspike.posterior.beliefs import Beliefs, Posterior
from softspike.schedule import Time

__all__ = ["GaussianAround"]


class _HasValue(Protocol):
    """What it needs of a level, which lies to its right on the arrow."""

    value: Tensor


class GaussianAround(Posterior):
    """s = h + λ·rᵢ·ε with a learned ratio rᵢ = σᵢ/λ per component; measured in levels, so it is scale-free."""

    def __init__(self, n_components: int, level: _HasValue, ratio: float = 0.2):
        super().__init__()
        self._shared = (level,)  # not registered twice: the threshold owns it
        self.log_ratio = nn.Parameter(torch.full((n_components,), float(ratio)).log())

    def forward(self, h: Tensor, step: Time | None = None) -> Beliefs:
        scale = self._shared[0].value.detach() * self.log_ratio.clamp(-5.0, 1.0).exp()
        law = Normal(h, scale.expand_as(h), validate_args=False)
        return Beliefs(law, law)
