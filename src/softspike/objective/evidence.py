"""What is known about one batch: the data, the posterior it was given, and how to score draws from it."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator as Random
from torch import Tensor
from torch.distributions import Distribution, Gamma, kl_divergence

from softspike.generator import Generator
from softspike.posterior import Beliefs, SpikeSlab, noise, place
from softspike.threshold import Threshold, ThresholdedLaw

__all__ = ["Evidence", "Noise", "Terms"]


class Noise(NamedTuple):
    """The randomness of J draws; with a law's parameters it determines them."""

    base: Tensor  # (J, B, …)
    level: Tensor | None  # (J, B, d), or None where the level is fixed

    def pick(self, winner: Tensor) -> "Noise":
        """The noise of one sample per input, winner (B,), as a single draw (1, B, …)."""
        rows = torch.arange(winner.shape[0], device=winner.device)
        level = None if self.level is None else self.level[winner, rows][None]
        return Noise(self.base[winner, rows][None], level)

    def where(self, mine: Tensor, other: "Noise") -> "Noise":
        """This noise for the inputs where `mine` (B,) holds, the other's elsewhere; both single draws."""

        def chosen(own: Tensor, its: Tensor) -> Tensor:
            return torch.where(mine.view(1, -1, *[1] * (own.ndim - 2)), own, its)

        level = None if self.level is None or other.level is None else chosen(self.level, other.level)
        return Noise(chosen(self.base, other.base), level)

    @staticmethod
    def joined(parts: "list[Noise]") -> "Noise":
        """The samples of several parts, one after the other."""
        levels = [part.level for part in parts if part.level is not None]
        return Noise(torch.cat([part.base for part in parts]), torch.cat(levels) if levels else None)


class Terms(NamedTuple):
    """The loss of each input and what it is made of, each (B,)."""

    loss: Tensor  # what is minimised, β × (−bound in nats) up to a constant
    misfit: Tensor  # mean over features of (x − x̂)²
    kl: Tensor  # β-free divergence from the prior, summed over components
    active: Tensor  # number of non-zero components of the sample in use, or its expectation
    unit: Tensor | float  # what 1 of ½‖x − x̂‖² weighs in this loss, so that penalties join on the same scale
    active_slope: Tensor | None = None  # ∂active/∂λ, where the expectation is closed-form


@dataclass(frozen=True)
class Evidence:
    """One batch under one model. The likelihood is N(x; G(z), v·I) with v = βD/2, which makes

    β·(−ELBO) = mean over features of (x − x̂)²  +  β·KL  +  constant,

    so the reduction is named once, here: a *mean* over features, a *sum* over components.
    """

    x: Tensor  # (B, D)
    beliefs: Beliefs
    level: Gamma | None  # q(λ|x), or None where the level is fixed
    prior: Distribution
    threshold: Threshold | None
    generator: Generator
    beta: Tensor | float
    level_beta: Tensor | float

    def noise(self, n_samples: int, generator: Random | None = None) -> Noise:
        base = noise(self.beliefs.sampled, n_samples, generator)
        return Noise(base, None if self.level is None else noise(self.level, n_samples, generator))

    def codes(self, noise: Noise) -> Tensor:
        """z, (J, B, d)."""
        s = place(self.beliefs.sampled, noise.base)
        if self.threshold is None:
            return s
        level = self.threshold.draw_level(self.level, noise.level)
        return self.threshold.gradient(self.threshold.law(self.beliefs.sampled, level), s)

    def values(self, noise: Noise) -> Tensor:
        """z, (J, B, d), equal to `codes` but for the gradient, whose detours it spares."""
        s = place(self.beliefs.sampled, noise.base)
        if self.threshold is None:
            return s
        level = self.threshold.draw_level(self.level, noise.level)
        return self.threshold.law(self.beliefs.sampled, level).transform(s)

    def misfit(self, z: Tensor) -> Tensor:
        """mean over features of (x − x̂)², (J, B)."""
        return (self.x - self.generator(z)).square().flatten(2).mean(-1)

    def scores(self, z: Tensor) -> Tensor:
        """The misfit by the generator's preview, (J, B): what samples are compared by. No gradient, no trace left."""
        return self.generator.errors(self.x, z)

    @property
    def unit(self) -> float:
        """mean over features = (2/D)·½‖x − x̂‖²."""
        return 2 / self.x[0].numel()

    def law(self) -> ThresholdedLaw:
        """q(z|x) where the level is a number."""
        if self.threshold is None or self.level is not None:
            raise TypeError("q(z|x) is closed-form for a threshold at a known level only; use a sampled objective")
        return self.threshold.law(self.beliefs.settled, self.threshold.level.value)

    @property
    def prior_on_codes(self) -> bool:
        """Whether the prior speaks of z itself (a spike-and-slab) or of the base variable s, as in the paper."""
        return self.threshold is not None and isinstance(self.prior, SpikeSlab)

    def component_kl(self) -> Tensor:
        """KL(q(s|x) ‖ p(s)) of each component, or KL(q(z|x) ‖ p(z)) for a prior on codes, (B, d)."""
        q = self.law() if self.prior_on_codes else self.beliefs.settled
        return kl_divergence(q, self.prior.expand(q.batch_shape))

    def kl(self) -> Tensor:
        """The divergence of all components, + (β₂/β)·KL(q(λ|x) ‖ p(λ)) where the level is drawn, (B,)."""
        total = self.component_kl().sum(-1)
        if self.level is None or self.threshold is None:
            return total
        return total + (self.level_beta / self.beta) * self.threshold.level.kl(self.level)

    @property
    def noise_variance(self) -> Tensor:
        """v = βD/2."""
        return torch.as_tensor(self.beta * self.x[0].numel() / 2, dtype=self.x.dtype, device=self.x.device)

    def log_weights(self, noise: Noise) -> Tensor:
        """log p(x|z)p(z, λ) − log q(z, λ|x) in nats, (J, B), with the true mixed densities."""
        z = self.codes(noise)
        return self.log_weights_of(noise, z, self.misfit(z))

    def log_weights_of(self, noise: Noise, z: Tensor, misfit: Tensor) -> Tensor:
        """The same where the codes of this noise and their misfit are known already."""
        v, n_features = self.noise_variance, self.x[0].numel()
        likelihood = -0.5 * n_features * (misfit / v + torch.log(2 * math.pi * v))
        if self.threshold is None:
            ratio = self.prior.log_prob(z) - self.beliefs.sampled.log_prob(z)
            return likelihood + ratio.sum(-1)
        level = self.threshold.draw_level(self.level, noise.level)
        q = self.threshold.law(self.beliefs.sampled, level)
        p = self.prior if self.prior_on_codes else self.threshold.law(self.prior, level)
        ratio = p.log_prob(z) - q.log_prob(z)
        if self.level is not None:
            ratio = ratio + self.threshold.level.log_ratio(self.level, level)
        return likelihood + ratio.sum(-1)
