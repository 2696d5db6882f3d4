"""What a posterior head returns."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn
from torch.distributions import Distribution

from softspike.schedule import Time

__all__ = ["LOG_LIMIT", "Beliefs", "Posterior"]

# Bound on log σ² and log b. It never binds in a healthy run; where γ → 0 nothing else keeps an unused slab finite.
LOG_LIMIT = 20.0


class Beliefs(NamedTuple):
    """q(s|x) at one training step. Warm-ups change what is sampled, not what is paid for."""

    sampled: Distribution  # the law that samples are drawn from at this step
    settled: Distribution  # the law whose divergence from the prior is paid, and which holds once training is over


class Posterior(nn.Module, ABC):
    """h (B, width) → q(s|x); `step` is None once training is over."""

    @abstractmethod
    def forward(self, h: Tensor, step: Time | None = None) -> Beliefs: ...
