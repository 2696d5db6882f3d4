"""Divergences from the prior inside a kernel, each with its slopes at the heads. Device functions only."""

import triton
import triton.language as tl

from softspike.kernels.heads import believed_rate, log_sigmoid
from softspike.kernels.special import digamma, log_gamma, trigamma

__all__ = ["gamma_kl", "laplace_kl", "normal_kl", "spike_slab_kl"]


@triton.jit
def laplace_kl(location, log_scale, prior_scale):
    """|μ|/b₀ + (b/b₀)·exp(−|μ|/b) + log(b₀/b) − 1, and its slopes in μ and log b."""
    scale = tl.exp(tl.minimum(tl.maximum(log_scale, -20.0), 20.0))
    distance, ratio = tl.abs(location) / scale, scale / prior_scale
    tail = tl.exp(-distance)
    sign = tl.where(location > 0, 1.0, tl.where(location < 0, -1.0, 0.0))
    kl = ratio * (distance + tail) - tl.log(ratio) - 1.0
    return kl, sign * (1.0 - tail) / prior_scale, ratio * tail * (1.0 + distance) - 1.0


@triton.jit
def normal_kl(location, log_variance, prior_scale):
    """½[(μ² + σ²)/σ₀² − 1 − log(σ²/σ₀²)], and its slopes in μ and log σ²."""
    ratio = tl.exp(tl.minimum(tl.maximum(log_variance, -20.0), 20.0)) / (prior_scale * prior_scale)
    apart = location / prior_scale
    return 0.5 * (apart * apart + ratio - 1.0 - tl.log(ratio)), apart / prior_scale, 0.5 * (ratio - 1.0)


@triton.jit
def spike_slab_kl(raw, reading, slab_kl, slab_location, slab_scale, prior_logit):
    """γ·KL(slab) + KL(Bern(γ) ‖ Bern(γ₀)) with γ as the head is read, and its slopes in μ, log σ² and raw."""
    rate, log_rate, log_rest, rate_slope = believed_rate(raw, reading)
    kl = rate * (slab_kl + log_rate - log_sigmoid(prior_logit))
    kl += (1.0 - rate) * (log_rest - log_sigmoid(-prior_logit))
    by_raw = rate_slope * (slab_kl + log_rate - log_rest - prior_logit)
    return kl, rate * slab_location, rate * slab_scale, by_raw


@triton.jit
def gamma_kl(shape, rate, prior_shape, prior_rate):
    """KL(Gamma(α, β) ‖ Gamma(α₀, β₀)), and its slopes in log α and log β."""
    ratio = prior_rate / rate
    kl = (shape - prior_shape) * digamma(shape) - log_gamma(shape) + log_gamma(prior_shape)
    kl += shape * (ratio - 1.0) - prior_shape * tl.log(ratio)
    by_shape = shape * ((shape - prior_shape) * trigamma(shape) + ratio - 1.0)
    return kl, by_shape, prior_shape - shape * ratio
