"""Reading the encoder's heads inside a kernel: location, scale, level and spike of a tile. Device functions only."""

import triton
import triton.language as tl

from softspike.kernels.draws import SPIKE

__all__ = ["believed_rate", "drawn_logit", "drawn_slope", "exp_clamped", "log_sigmoid", "read_head", "sampled_slab"]

_LOG_LEAST, _LOG_MOST = (
    tl.constexpr(-13.815510557964274),
    tl.constexpr(-1.0000005000002918e-06),
)  # log 1e-6, log(1 − 1e-6)


@triton.jit
def read_head(heads, number, b, i, n_components, N_HEADS: tl.constexpr, inside):
    """The tile (b, i) of one head of (B, N_HEADS·d)."""
    return tl.load(heads + b.to(tl.int64) * (N_HEADS * n_components) + number * n_components + i, inside, 0.0)


@triton.jit
def exp_clamped(raw, low, high):
    return tl.exp(tl.minimum(tl.maximum(raw, low), high))


@triton.jit
def log_sigmoid(raw):
    return tl.minimum(raw, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(raw)))


@triton.jit
def drawn_logit(raw, reading):
    """The logit of the rate at which non-zeros are drawn, as `SpikeLogits.drawn`."""
    return tl.where(reading == 1.0, log_sigmoid(raw), tl.where(reading == 2.0, tl.minimum(raw, 0.0), raw))


@triton.jit
def drawn_slope(raw, reading):
    """d `drawn_logit`/d raw."""
    clipped = tl.where(raw < 0, 1.0, 0.0)
    return tl.where(reading == 1.0, tl.sigmoid(-raw), tl.where(reading == 2.0, clipped, 1.0))


@triton.jit
def believed_rate(raw, reading):
    """γ, log γ, log(1 − γ) and dγ/d raw, as `SpikeLogits.believed` has them."""
    log_rate = tl.minimum(tl.maximum(raw, _LOG_LEAST), _LOG_MOST)
    clipped = tl.exp(log_rate)
    free = (raw > _LOG_LEAST) & (raw < _LOG_MOST)
    rate = tl.sigmoid(raw)
    return (
        tl.where(reading == 2.0, clipped, rate),
        tl.where(reading == 2.0, log_rate, log_sigmoid(raw)),
        tl.where(reading == 2.0, tl.log(1.0 - clipped), log_sigmoid(-raw)),
        tl.where(reading == 2.0, tl.where(free, clipped, 0.0), rate * (1.0 - rate)),
    )


@triton.jit
def sampled_slab(raw_location, raw_scale, warm_up, LAPLACE: tl.constexpr, FORM: tl.constexpr):
    """Location and scale of what is sampled: Laplace (μ, ωb), normal (μ, σ), or the warmed-up slab of a spike."""
    if LAPLACE:
        return raw_location, warm_up * exp_clamped(raw_scale, -20.0, 20.0)
    else:
        sigma = exp_clamped(0.5 * raw_scale, -10.0, 10.0)
        if FORM == SPIKE:
            return warm_up * raw_location, warm_up * sigma + tl.sqrt(1.0 - warm_up)
        else:
            return raw_location, sigma
