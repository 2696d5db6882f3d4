"""Draws inside a kernel: the same numbers as `counter`, tile by tile. Device functions only."""

import os
from enum import IntEnum

import triton
import triton.language as tl
from triton.language.extra import libdevice

from softspike.kernels import counter

__all__ = ["Form", "base_noise", "code_of", "gamma_noise", "pick_of", "spike_noise", "stacked"]


class Form(IntEnum):
    """What a family of replicas samples: the base law, the same behind a threshold (fixed, Gamma), a spike-and-slab."""

    PLAIN = 0
    FIXED = 1
    GAMMA = 2
    SPIKE = 3


PLAIN, FIXED, GAMMA, SPIKE = (tl.constexpr(form.value) for form in Form)

_BASE_STREAM = tl.constexpr(counter.BASE)
_SPIKE_STREAM = tl.constexpr(counter.SPIKE)
_BOOST_STREAM = tl.constexpr(counter.BOOST)
_GAMMA_STREAM = tl.constexpr(counter.GAMMA)
_ROUNDS = tl.constexpr(counter.ROUNDS)
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")  # where the hardware has no logarithm


@triton.jit
def _log(x):
    """log x by the hardware: absolute error 2⁻²² on [½, 2], relative 2⁻²² elsewhere. Triton's own is thirty
    instructions and a branch, more than everything else that makes a number random."""
    if _INTERPRETED:
        return tl.log(x)
    else:
        return libdevice.fast_logf(x)


@triton.jit
def _unit(word):
    """(⌊word/2⁹⌋ + ½)·2⁻²³."""
    return ((word >> 9).to(tl.float32) + 0.5) * 1.1920928955078125e-07


@triton.jit
def _words(seed, element, group, step, stream):
    element = element.to(tl.uint32)
    zero = element * 0
    group, step, stream = zero + group.to(tl.uint32), zero + step.to(tl.uint32), zero + stream
    return tl.philox(seed, element, group, step, stream.to(tl.uint32), _ROUNDS)


@triton.jit
def _normal(u, v):
    """Box and Muller. sin and cos of 2πv by Taylor series of half the angle, which stays within ±π/2: error < 1e-7.

    The library's own reduce any angle, at several times the cost.
    """
    half = 3.141592653589793 * (v - 0.5)
    t = half * half
    s = 1.0 + t * (-0.16666666666666666 + t * (0.008333333333333333 + t * (-0.0001984126984126984
        + t * (2.7557319223985893e-06 - t * 2.505210838544172e-08))))  # fmt: skip
    c = 1.0 + t * (-0.5 + t * (0.041666666666666664 + t * (-0.001388888888888889
        + t * (2.48015873015873e-05 + t * (-2.755731922398589e-07 + t * 2.08767569878681e-09)))))  # fmt: skip
    s = half * s
    radius = tl.sqrt(-2.0 * _log(u))
    return radius * (s * s - c * c), radius * (-2.0 * s * c)


@triton.jit
def _laplace(u):
    centred = u - 0.5
    size = -_log(tl.maximum(1.0 - 2.0 * tl.abs(centred), 1e-6))
    return tl.where(centred > 0, size, tl.where(centred < 0, -size, 0.0))


@triton.jit
def base_noise(seed, element, group, step, LAPLACE: tl.constexpr):
    """Standard noise of samples 4·group … 4·group + 3: one Philox call for four numbers."""
    a, b, c, d = _words(seed, element, group, step, _BASE_STREAM)
    a, b, c, d = _unit(a), _unit(b), _unit(c), _unit(d)
    if LAPLACE:
        return _laplace(a), _laplace(b), _laplace(c), _laplace(d)
    else:
        e, f = _normal(a, b)
        g, h = _normal(c, d)
        return e, f, g, h


@triton.jit
def _logistic(u):
    u = tl.minimum(tl.maximum(u, 1e-6), 1.0 - 1e-6)
    return _log(u / (1.0 - u))


@triton.jit
def spike_noise(seed, element, group, step):
    """Standard logistic noise of samples 4·group … 4·group + 3."""
    a, b, c, d = _words(seed, element, group, step, _SPIKE_STREAM)
    return _logistic(_unit(a)), _logistic(_unit(b)), _logistic(_unit(c)), _logistic(_unit(d))


@triton.jit
def _proposal(d, slope, x, w):
    """One proposal d·(1 + x/√(9d))³ of Gamma(d + ⅓), or −1 where it is refused."""
    root = 1.0 + x * slope
    cube = root * root * root
    bound = 0.5 * x * x + d - d * cube + d * _log(tl.maximum(cube, 1e-30))
    return tl.where((root > 0) & (_log(w) < bound), d * cube, -1.0)


@triton.jit
def _two_proposals(seed, element, group, step, stream, d, slope):
    a, b, c, e = _words(seed, element, group, step, stream)
    x, y = _normal(_unit(a), _unit(b))
    return _proposal(d, slope, x, _unit(c)), _proposal(d, slope, y, _unit(e))


@triton.jit
def _given(g, turn, first, second):
    """A draw that was refused takes the first proposal, or the second where another draw has had the first."""
    refused = g < 0
    taken = tl.where(turn == 0, first, tl.where(turn == 1, second, -1.0))
    return tl.where(refused, taken, g), turn + refused.to(tl.int32)


@triton.jit
def _retried(seed, element, group, step, stream, d, slope, g0, g1, g2, g3):
    """Two more proposals, for the first two of the four draws that have no value yet."""
    first, second = _two_proposals(seed, element, group, step, stream, d, slope)
    g0, turn = _given(g0, (d * 0.0).to(tl.int32), first, second)
    g1, turn = _given(g1, turn, first, second)
    g2, turn = _given(g2, turn, first, second)
    g3, turn = _given(g3, turn, first, second)
    return g0, g1, g2, g3


@triton.jit
def gamma_noise(seed, alpha, element, group, step):
    """Gamma(α, 1) draws of samples 4·group … 4·group + 3, as `counter.standard_gamma`.

    A proposal each, and two for those that were refused, leave one element in a hundred without a value at most; the
    loop is for those.
    """
    d = tl.where(alpha < 1.0, alpha + 1.0, alpha) - 0.3333333333333333
    slope = 1.0 / tl.sqrt(9.0 * d)
    g0, g1 = _two_proposals(seed, element, group, step, _GAMMA_STREAM, d, slope)
    g2, g3 = _two_proposals(seed, element, group, step, _GAMMA_STREAM + 1, d, slope)
    g0, g1, g2, g3 = _retried(seed, element, group, step, _GAMMA_STREAM + 2, d, slope, g0, g1, g2, g3)
    stream = _GAMMA_STREAM + 3
    # A shape that is not finite is never accepted; the loop must end all the same.
    while (tl.min(tl.min(tl.minimum(tl.minimum(g0, g1), tl.minimum(g2, g3)), 1), 0) < 0) & (stream < 256):
        g0, g1, g2, g3 = _retried(seed, element, group, step, stream, d, slope, g0, g1, g2, g3)
        stream += 1
    if tl.min(tl.min(alpha, 1), 0) < 1.0:
        a, b, c, e = _words(seed, element, group, step, _BOOST_STREAM)
        g0, g1 = _boosted(g0, alpha, a), _boosted(g1, alpha, b)
        g2, g3 = _boosted(g2, alpha, c), _boosted(g3, alpha, e)
    return g0, g1, g2, g3


@triton.jit
def _boosted(g, alpha, word):
    return tl.where(alpha < 1.0, g * tl.exp(_log(_unit(word)) / alpha), g)


@triton.jit
def code_of(noise, location, scale, extra, unit, FORM: tl.constexpr):
    """z from one draw's noise: s = location + scale·noise, then the threshold at extra·unit, or the spike at extra."""
    moved = scale * noise
    if FORM == PLAIN:
        return location + moved
    elif FORM == SPIKE:
        return tl.where(extra > 0, location + moved, 0.0)
    else:
        level = extra * unit
        kept = tl.where(moved > 0, moved - level, moved + level) + location
        return tl.where(tl.abs(moved) > level, kept, 0.0)


@triton.jit
def pick_of(a, b, c, d, lane):
    """The lane-th of four tiles, row by row."""
    return tl.where(lane == 0, a, tl.where(lane == 1, b, tl.where(lane == 2, c, d)))


@triton.jit
def stacked(a, b, c, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Four (ROWS, COLUMNS) tiles as one of 4·ROWS rows."""
    four = tl.permute(tl.join(tl.join(a, c), tl.join(b, d)), (2, 3, 0, 1))
    return tl.reshape(four, (4 * ROWS, COLUMNS))
