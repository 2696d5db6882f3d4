"""Closed-form divergences between thresholded laws, registered with `torch.distributions.kl_divergence`.

Laplace: the shifted pair. Normal: the centred pair, the hard pair, and the hard laws against a spike-and-slab. Other
pairs of one law over one base have no closed form here and say so. All are with respect to δ₀ + Lebesgue:

    KL(q ‖ p) = P_q(0)·log(P_q(0)/P_p(0)) + ∫ q(z)·log(q(z)/p(z)) dz.
"""

import math
from typing import NoReturn

import torch
from torch import Tensor
from torch.distributions import Distribution, HalfNormal, Laplace, Normal, kl_divergence, register_kl
from torch.nn.functional import logsigmoid

from softspike.posterior.spike_slab import SpikeSlab
from softspike.prior import divergence  # noqa: F401  (registers SpikeSlab ‖ SpikeSlab)
from softspike.threshold.centred import CentredSoft
from softspike.threshold.hard import Hard, PositiveHard
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import NORMAL_PEAK, reflected
from softspike.threshold.shifted import ShiftedSoft

__all__ = ["as_spike_slab"]


def as_spike_slab(law: ShiftedSoft) -> SpikeSlab:
    """Proposition 3.1: ShiftedSoft(Laplace(μ, b), λ) is a spike-and-slab, of slab Laplace(μ, b) and γ = exp(−λ/b)."""
    if not isinstance(law.base, Laplace):
        raise NotImplementedError(
            f"a {type(law).__name__} law over {type(law.base).__name__} is no spike-and-slab and has no "
            "closed-form divergence; give it a Laplace base, or average log_prob differences over samples"
        )
    return SpikeSlab(law.base, law.log_activation - law.log_silence, validate_args=False)


@register_kl(ShiftedSoft, ShiftedSoft)
def _shifted_pair(q: ShiftedSoft, p: ShiftedSoft) -> Tensor:
    """γ·KL(Laplace ‖ Laplace₀) + KL(Bern(γ) ‖ Bern(γ₀)), at any two levels."""
    return kl_divergence(as_spike_slab(q), as_spike_slab(p))


@register_kl(ShiftedSoft, SpikeSlab)
def _shifted_spike_slab(q: ShiftedSoft, p: SpikeSlab) -> Tensor:
    return kl_divergence(as_spike_slab(q), p)


@register_kl(Hard, SpikeSlab)
def _hard_spike_slab(q: Hard, p: SpikeSlab) -> Tensor:
    """(1−γ)·log((1−γ)/(1−π)) − γ·log π + E[1(|s|>λ)·(log N(s; μ, σ²) − log slab(s))]."""
    kept = _kept(q, p.slab, shift=torch.zeros_like(q.level))
    return _silent(q, logsigmoid(-p.logits)) - q.activation_probability * logsigmoid(p.logits) + kept


@register_kl(PositiveHard, SpikeSlab)
def _positive_spike_slab(q: PositiveHard, p: SpikeSlab) -> Tensor:
    """As the hard law above λ alone, against a half-normal slab: log 2 denser there than the normal."""
    if not (isinstance(q.base, Normal) and isinstance(p.slab, HalfNormal)):
        _refuse(q, p.slab)
    slab = Normal(torch.zeros_like(p.slab.scale), p.slab.scale, validate_args=False)
    gain = logsigmoid(p.logits) + math.log(2)
    return _silent(q, logsigmoid(-p.logits)) - q.activation_probability * gain + _above(q.base, slab, q.level)


@register_kl(Hard, Hard)
def _hard_pair(q: Hard, p: Hard) -> Tensor:
    """(1−γ)·log((1−γ)/(1−γ₀)) + E[1(|s|>λ)·(log q(s) − log p(s))]; +∞ where λ < λ₀: p has no density in between."""
    kept = _kept(q, p.base, shift=torch.zeros_like(q.level))
    return torch.where(q.level < p.level, torch.inf, _silent(q, p.log_silence) + kept)


@register_kl(CentredSoft, CentredSoft)
def _centred_pair(q: CentredSoft, p: CentredSoft) -> Tensor:
    """As the hard pair, because soft-thresholding is injective on |s| > λ; p moves by λ − λ₀ on either side."""
    return _silent(q, p.log_silence) + _kept(q, p.base, shift=q.level - p.level)


def _silent(q: ThresholdedLaw, log_silence: Tensor) -> Tensor:
    """(1−γ)·log((1−γ)/(1−γ₀))."""
    return q.log_silence.exp() * (q.log_silence - log_silence)


def _kept(q: ThresholdedLaw, p: Distribution, shift: Tensor) -> Tensor:
    """E[1(|s| > λ)·(log q(s) − log p(s − sign(s)·shift))], s from q's base."""
    if not (isinstance(q.base, Normal) and isinstance(p, Normal)):
        _refuse(q, p)
    above = Normal(p.loc + shift, p.scale, validate_args=False)
    below = Normal(p.loc - shift, p.scale, validate_args=False)
    return _above(q.base, above, q.level) + _above(reflected(q.base), reflected(below), q.level)


def _above(q: Normal, p: Normal, point: Tensor) -> Tensor:
    """E[1(s > t)·(log q(s) − log p(s))], s ~ q. With u = (s−μ)/σ, a = (μ−t)/σ, δ = μ−μ₀:

    E[1(s > t)·(1, u, u²)] = (Φ(a), φ(a), Φ(a) − aφ(a));  the integrand is log(σ₀/σ) − u²/2 + (σu + δ)²/2σ₀².
    """
    a, delta = (q.loc - point) / q.scale, q.loc - p.loc
    one = torch.special.ndtr(a)
    first = torch.exp(-0.5 * a.square()) * NORMAL_PEAK
    second = one - a * first
    ratio, offset = q.scale / p.scale, delta / p.scale
    square = ratio.square() * second + 2 * ratio * offset * first + offset.square() * one
    return 0.5 * (square - second) - ratio.log() * one


def _refuse(q: ThresholdedLaw, p: Distribution) -> NoReturn:
    raise NotImplementedError(
        f"no closed-form divergence of a {type(q).__name__} law over {type(q.base).__name__} from one over "
        f"{type(p).__name__}; give both a Normal base, or average log_prob differences over samples"
    )
