"""The bound without sampling: for a linear generator the expected squared error is closed-form."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.distributions import HalfNormal, Normal

from softspike.generator import LinearGenerator
from softspike.objective.evidence import Evidence, Terms
from softspike.objective.hard import hard_gaussian_moments
from softspike.objective.samples import Objective
from softspike.posterior import SpikeSlab
from softspike.threshold import Hard, PositiveHard

__all__ = ["Expected", "ExpectedPlain"]


@dataclass(frozen=True)
class Expected(Objective):
    """−ELBO in nats at the noise variance that maximises it:  ½D·log(2πv) + D·misfit/2v + KL,  v = mean misfit.

    E‖x − Az‖² = ‖x − A·E z‖² + Σᵢ‖aᵢ‖²·Var zᵢ needs the moments of q(z|x), not its samples. v is held fixed in the
    backward pass, which at its optimum leaves the gradient what it is. For hard-thresholded Gaussians, one pass.
    """

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        law, prior = evidence.law(), evidence.prior
        if not (isinstance(law, Hard | PositiveHard) and isinstance(law.base, Normal) and isinstance(prior, SpikeSlab)):
            return ExpectedPlain()(evidence)
        positive = isinstance(law, PositiveHard)
        if not isinstance(prior.slab, HalfNormal if positive else Normal):
            return ExpectedPlain()(evidence)
        m = hard_gaussian_moments(
            law.base.loc, law.base.scale, law.level, prior.logits, prior.slab.scale, positive=positive
        )
        kl, active = m.kl.sum(-1), m.probability.sum(-1)
        return _terms(evidence, m.mean, m.variance, kl, active, m.slope.sum(-1))


@dataclass(frozen=True)
class ExpectedPlain(Objective):
    """The same from the law's own mean, variance and divergence: the reference that `Expected` must equal."""

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        law = evidence.law()
        active = law.activation_probability.sum(-1)
        return _terms(evidence, law.mean, law.variance, evidence.kl(), active, None)


def _terms(
    evidence: Evidence, mean: Tensor, variance: Tensor, kl: Tensor, active: Tensor, slope: Tensor | None
) -> Terms:
    if not isinstance(evidence.generator, LinearGenerator):
        raise TypeError("the expected error is closed-form for a linear generator only; use a sampled objective")
    n_features = evidence.x.shape[-1]
    norms = evidence.generator.atoms.square().sum(0)
    residual = (evidence.x - evidence.generator(mean)).square().sum(-1)
    misfit = (residual + variance @ norms) / n_features
    v = misfit.detach().mean().clamp_min(torch.finfo(misfit.dtype).tiny)
    loss = 0.5 * n_features * (misfit / v + torch.log(2 * math.pi * v)) + kl
    return Terms(loss, misfit, kl, active, 1 / v, slope)
