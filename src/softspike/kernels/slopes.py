"""The loss's gradient at the heads: the winner's decoding error through the atoms and the draw, plus the KL's.

loss = (1/B)·Σ_b [ mean over features of (x̂ − x)² + β·KL(q(s|x) ‖ p) + β₂·KL(q(λ|x) ‖ p(λ)) ]
"""

import triton
import triton.language as tl

from softspike.kernels import settings as column
from softspike.kernels.divergences import gamma_kl, laplace_kl, normal_kl, spike_slab_kl
from softspike.kernels.draws import GAMMA, PLAIN, SPIKE
from softspike.kernels.four import LOG_HIGH, LOG_LOW
from softspike.kernels.heads import drawn_slope, exp_clamped, read_head, sampled_slab

__all__ = ["head_slopes"]


@triton.jit
def head_slopes(
    heads, atoms, errors, codes, noises, extras, level_slopes, settings, clock,
    warm_ups, warm_up_of, temperatures, temperature_of, totals,
    n_rows, n_features, n_components, n_steps, share,
    N_HEADS: tl.constexpr, LAPLACE: tl.constexpr, FORM: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, COMPONENTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Overwrites each head with the gradient there: every program reads its tile before it writes it."""
    r = tl.program_id(2).to(tl.int64)
    settings += r * column.COLUMNS
    step = tl.load(clock)
    warm_up = tl.load(warm_ups + tl.load(warm_up_of + r).to(tl.int64) * n_steps + step)
    temperature = tl.load(temperatures + tl.load(temperature_of + r).to(tl.int64) * n_steps + step)
    b = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None]
    i = (tl.program_id(0) * COMPONENTS + tl.arange(0, COMPONENTS))[None, :]
    inside = (b < n_rows) & (i < n_components)
    upstream = _upstream(
        errors + r * n_rows * n_features, atoms + r * n_features * n_components, b, i,
        n_rows, n_features, n_components, ROWS, FEATURES, COMPONENTS, PRECISION,
    ) * (2.0 * share / n_features)  # fmt: skip

    heads += r * n_rows * N_HEADS * n_components
    place = r * n_rows * n_components + b.to(tl.int64) * n_components + i
    z, noise = tl.load(codes + place, inside, 0.0), tl.load(noises + place, inside, 0.0)
    raw_location = read_head(heads, 0, b, i, n_components, N_HEADS, inside)
    raw_scale = read_head(heads, 1, b, i, n_components, N_HEADS, inside)
    if LAPLACE:
        kl, kl_location, kl_scale = laplace_kl(raw_location, raw_scale, tl.load(settings + column.PRIOR_SCALE))
    else:
        kl, kl_location, kl_scale = normal_kl(raw_location, raw_scale, tl.load(settings + column.PRIOR_SCALE))
    by_location, by_scale = _through_draw(upstream, z, noise, raw_location, raw_scale, warm_up, settings, LAPLACE, FORM)
    beta = tl.load(settings + column.BETA)
    row = heads + b.to(tl.int64) * (N_HEADS * n_components) + i
    if FORM == SPIKE:
        raw = read_head(heads, 2, b, i, n_components, N_HEADS, inside)
        reading = tl.load(settings + column.READING)
        kl, kl_location, kl_scale, kl_raw = spike_slab_kl(
            raw, reading, kl, kl_location, kl_scale, tl.load(settings + column.PRIOR_LOGIT)
        )
        location, scale = sampled_slab(raw_location, raw_scale, warm_up, LAPLACE, FORM)
        by_raw = _through_spike(
            upstream * (location + scale * noise), tl.load(extras + place, inside, 0.0), raw, temperature, reading
        )
        tl.store(row + 2 * n_components, by_raw + share * beta * kl_raw, inside)
    if FORM == GAMMA:
        raw_shape = read_head(heads, 2, b, i, n_components, N_HEADS, inside)
        raw_rate = read_head(heads, 3, b, i, n_components, N_HEADS, inside)
        shape, rate = exp_clamped(raw_shape, LOG_LOW, LOG_HIGH), exp_clamped(raw_rate, LOG_LOW, LOG_HIGH)
        level_kl, kl_shape, kl_rate = gamma_kl(
            shape, rate, tl.load(settings + column.LEVEL_SHAPE), tl.load(settings + column.LEVEL_RATE)
        )
        # λ = g/β: dλ/d(log α) = (dg/dα)·α/β, dλ/d(log β) = −λ, and dz/dλ = −sign(noise) on active units.
        by_level = tl.where(z != 0, tl.where(noise > 0, -upstream, upstream), 0.0) / rate
        weight = tl.load(settings + column.LEVEL_BETA)
        by_shape = by_level * tl.load(level_slopes + place, inside, 0.0) * shape + share * weight * kl_shape
        by_rate = -by_level * tl.load(extras + place, inside, 0.0) + share * weight * kl_rate
        free_shape = (raw_shape >= LOG_LOW) & (raw_shape <= LOG_HIGH)
        tl.store(row + 2 * n_components, tl.where(free_shape, by_shape, 0.0), inside)
        free_rate = (raw_rate >= LOG_LOW) & (raw_rate <= LOG_HIGH)
        tl.store(row + 3 * n_components, tl.where(free_rate, by_rate, 0.0), inside)
        kl += weight / beta * level_kl
    tl.store(row, by_location + share * beta * kl_location, inside)
    free = tl.abs(raw_scale) <= 20.0
    tl.store(row + n_components, tl.where(free, by_scale + share * beta * kl_scale, 0.0), inside)
    tl.atomic_add(totals + r * 3 + 1, share * tl.sum(tl.sum(tl.where(inside, kl, 0.0), 1), 0))


@triton.jit
def _upstream(
    errors, atoms, b, i, n_rows, n_features, n_components,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, COMPONENTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """(x̂ − x)·A, the tile (b, i)."""
    total = tl.zeros((ROWS, COMPONENTS), tl.float32)
    for first in range(0, n_features, FEATURES):
        f, k = first + tl.arange(0, FEATURES)[None, :], first + tl.arange(0, FEATURES)[:, None]
        left = tl.load(errors + b * n_features + f, (b < n_rows) & (f < n_features), 0.0)
        right = tl.load(atoms + k * n_components + i, (k < n_features) & (i < n_components), 0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    return total


@triton.jit
def _through_draw(
    upstream, z, noise, raw_location, raw_scale, warm_up, settings, LAPLACE: tl.constexpr, FORM: tl.constexpr
):
    """upstream·dz/dμ and upstream·dz/d(head of the scale), through the draw and what is done to it."""
    on = z != 0
    _, scale = sampled_slab(raw_location, raw_scale, warm_up, LAPLACE, FORM)
    if LAPLACE:
        by_scale = upstream * scale * noise
    else:
        by_scale = upstream * 0.5 * scale * noise
    if FORM == PLAIN:
        return upstream, by_scale
    elif FORM == SPIKE:
        kept = tl.where(on, warm_up * upstream, 0.0)
        return kept, kept * 0.5 * exp_clamped(0.5 * raw_scale, -10.0, 10.0) * noise
    else:
        silent, doubled = tl.load(settings + column.SILENT_SLOPE), tl.load(settings + column.LOCATION_SLOPE)
        return upstream * tl.where(on, doubled, silent), by_scale * tl.where(on, 1.0, silent)


@triton.jit
def _through_spike(upstream, noisy, raw, temperature, reading):
    """Backward as if the spike were sigmoid(noisy/τ), down to the head."""
    soft = tl.sigmoid(noisy / temperature)
    return upstream * soft * (1.0 - soft) / temperature * drawn_slope(raw, reading)
