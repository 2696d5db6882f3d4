"""Four samples at a time, as a Philox call gives them: what they are made of, their codes. Device functions only."""

import triton
import triton.language as tl

from softspike.kernels import settings as column
from softspike.kernels.draws import GAMMA, SPIKE, base_noise, code_of, gamma_noise, spike_noise, stacked
from softspike.kernels.heads import drawn_logit, exp_clamped, read_head, sampled_slab

__all__ = ["four_codes", "four_codes_beside", "four_draws", "law_of"]

LOG_LOW, LOG_HIGH = tl.constexpr(-13.815510557964274), tl.constexpr(13.815510557964274)  # log 1e∓6


@triton.jit
def law_of(
    heads, settings, warm_up, b, i, inside, n_components,
    N_HEADS: tl.constexpr, LAPLACE: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """Location and scale of the base law; fixed level, α of a Gamma level or logit of a spike; unit of a level."""
    location, scale = sampled_slab(
        read_head(heads, 0, b, i, n_components, N_HEADS, inside),
        read_head(heads, 1, b, i, n_components, N_HEADS, inside), warm_up, LAPLACE, FORM,
    )  # fmt: skip
    chance, unit = tl.load(settings + column.LEVEL), 1.0
    if FORM == SPIKE:
        raw = read_head(heads, 2, b, i, n_components, N_HEADS, inside)
        chance = drawn_logit(raw, tl.load(settings + column.READING))
    if FORM == GAMMA:
        chance = exp_clamped(read_head(heads, 2, b, i, n_components, N_HEADS, inside), LOG_LOW, LOG_HIGH)
        unit = 1.0 / exp_clamped(read_head(heads, 3, b, i, n_components, N_HEADS, inside), LOG_LOW, LOG_HIGH)
    return location, scale, chance, unit


@triton.jit
def four_draws(seed, step, group, element, chance, LAPLACE: tl.constexpr, FORM: tl.constexpr):
    """Noise of samples 4·group … 4·group + 3, and for each its Gamma draw, its noisy logit, or the fixed level."""
    n0, n1, n2, n3 = base_noise(seed, element, group, step, LAPLACE)
    e0, e1, e2, e3 = chance, chance, chance, chance
    if FORM == SPIKE:
        e0, e1, e2, e3 = spike_noise(seed, element, group, step)
        e0, e1, e2, e3 = chance + e0, chance + e1, chance + e2, chance + e3
    if FORM == GAMMA:
        e0, e1, e2, e3 = gamma_noise(seed, chance, element, group, step)
    return n0, n1, n2, n3, e0, e1, e2, e3


@triton.jit
def four_codes(location, scale, unit, draws, ROWS: tl.constexpr, COMPONENTS: tl.constexpr, FORM: tl.constexpr):
    """The codes of `four_draws`, one below the other: (4·ROWS, COMPONENTS)."""
    n0, n1, n2, n3, e0, e1, e2, e3 = draws
    return stacked(
        code_of(n0, location, scale, e0, unit, FORM), code_of(n1, location, scale, e1, unit, FORM),
        code_of(n2, location, scale, e2, unit, FORM), code_of(n3, location, scale, e3, unit, FORM),
        ROWS, COMPONENTS,
    )  # fmt: skip


@triton.jit
def four_codes_beside(location, scale, unit, draws, ROWS: tl.constexpr, COMPONENTS: tl.constexpr, FORM: tl.constexpr):
    """The codes of `four_draws` of tiles (COMPONENTS, ROWS), four columns for each input: (COMPONENTS, 4·ROWS)."""
    n0, n1, n2, n3, e0, e1, e2, e3 = draws
    z0, z1 = code_of(n0, location, scale, e0, unit, FORM), code_of(n1, location, scale, e1, unit, FORM)
    z2, z3 = code_of(n2, location, scale, e2, unit, FORM), code_of(n3, location, scale, e3, unit, FORM)
    return tl.reshape(tl.join(tl.join(z0, z2), tl.join(z1, z3)), (COMPONENTS, 4 * ROWS))
