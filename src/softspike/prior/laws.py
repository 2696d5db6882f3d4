"""The priors, as modules so that they follow the model to its device."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import AbsTransform, HalfNormal, Laplace, Normal, TransformedDistribution

from softspike.posterior.spike_slab import SpikeSlab
from softspike.prior import divergence  # noqa: F401  (registers the divergences)

__all__ = ["LaplacePrior", "LearnedSpikeSlabPrior", "NormalPrior", "Prior", "SpikeSlabPrior"]


class Prior(nn.Module, ABC):
    """p(s), or p(z) itself for a spike-and-slab."""

    scale: Tensor

    @property
    @abstractmethod
    def law(self) -> Normal | Laplace | SpikeSlab:
        """The law of one component."""


class NormalPrior(Prior):
    """N(0, σ₀²), given by its *variance* σ₀²."""

    def __init__(self, variance: float = 0.1):
        super().__init__()
        self.register_buffer("scale", torch.tensor(math.sqrt(variance)))

    @property
    def law(self) -> Normal:
        return Normal(torch.zeros_like(self.scale), self.scale, validate_args=False)


class LaplacePrior(Prior):
    """Laplace(0, b₀)."""

    def __init__(self, scale: float = 0.1):
        super().__init__()
        self.register_buffer("scale", torch.tensor(float(scale)))

    @property
    def law(self) -> Laplace:
        return Laplace(torch.zeros_like(self.scale), self.scale, validate_args=False)


class SpikeSlabPrior(Prior):
    """(1 − γ₀)·δ₀ + γ₀·N(0, σ₀²)."""

    logit: Tensor

    def __init__(self, activity: float = 0.1, variance: float = 0.1):
        super().__init__()
        self.register_buffer("logit", _logit(activity))
        self.register_buffer("scale", torch.tensor(math.sqrt(variance)))

    @property
    def law(self) -> SpikeSlab:
        slab = Normal(torch.zeros_like(self.scale), self.scale, validate_args=False)
        return SpikeSlab(slab, self.logit, validate_args=False)


class LearnedSpikeSlabPrior(Prior):
    """(1 − π)·δ₀ + π·N(0, σ₀²) with a learned σ₀; for non-negative codes the slab is the half-normal."""

    logit: Tensor

    def __init__(self, activity: float, scale: float = 3.0, positive: bool = False):
        super().__init__()
        self.register_buffer("logit", _logit(activity))
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.positive = positive

    @property
    def scale(self) -> Tensor:  # type: ignore[override]
        return self.log_scale.exp()

    @property
    def law(self) -> SpikeSlab:
        slab = Normal(torch.zeros_like(self.log_scale), self.scale, validate_args=False)
        return SpikeSlab(_Half(slab) if self.positive else slab, self.logit, validate_args=False)


class _Half(HalfNormal):
    """torch's half-normal, made without sending a 0 to the device: a recorded training step could not do that."""

    def __init__(self, base: Normal):
        TransformedDistribution.__init__(self, base, AbsTransform(), validate_args=False)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfNormal:
        return _Half(self.base_dist.expand(batch_shape))


def _logit(probability: float) -> Tensor:
    return torch.tensor(math.log(probability) - math.log1p(-probability))
