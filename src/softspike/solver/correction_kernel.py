"""The loops of a support's correction, one row after another, on the entries of AᵀA that the support needs."""

import numpy as np
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled, kernel
from softspike.solver.correction_dense import FLATTEST, MOST
from softspike.solver.loops import Array, Whole, dot

__all__ = ["correct_rows"]

TINY = 1e-20


@compiled
def _slope(out: Array, match: Array, chosen: Whole, values: Array, gram: Array) -> None:
    """Aᵀ(x − Az) = Aᵀx − Σ zⱼ·Aᵀaⱼ, for all components; four atoms at a time spare three passes over them."""
    n, k, j = len(out), len(values), 0
    out[:] = match
    while j + 4 <= k:
        a, b, c, d = values[j], values[j + 1], values[j + 2], values[j + 3]
        p, q, r, s = gram[chosen[j]], gram[chosen[j + 1]], gram[chosen[j + 2]], gram[chosen[j + 3]]
        for i in range(n):
            out[i] -= a * p[i] + b * q[i] + c * r[i] + d * s[i]
        j += 4
    while j < k:
        a, p = values[j], gram[chosen[j]]
        for i in range(n):
            out[i] -= a * p[i]
        j += 1


@compiled
def _block(chosen: Whole, gram: Array) -> Array:
    """The part of AᵀA between the atoms of a support, (k, k)."""
    k = len(chosen)
    block = np.empty((k, k), gram.dtype)
    for i in range(k):
        row = gram[chosen[i]]
        for j in range(k):
            block[i, j] = row[chosen[j]]
    return block


@compiled
def _shortened(length: float, values: Array, direction: Array, free: NDArray[np.bool_]) -> float:
    """The length that takes at most nine tenths of any value; those which shorten it do not move from then on."""
    most, share = np.inf, values.dtype.type(MOST)
    for i in range(len(values)):
        if direction[i] < 0:
            most = min(most, -share * values[i] / direction[i])
    if not most < length:
        return length
    for i in range(len(values)):
        if direction[i] < 0 and -share * values[i] / direction[i] <= most:
            free[i] = False
    return most


@compiled
def _fit(values: Array, slope: Array, chosen: Whole, gram: Array, n_steps: int, positive: bool) -> None:
    """Conjugate gradients on ½‖x − Az‖² over the support, values and slope (k,) in place; none where A is flat."""
    if n_steps == 0:
        return
    k, kind = len(values), values.dtype.type
    block, free, fresh = _block(chosen, gram), np.ones(k, np.bool_), False
    gradient, direction, bend = slope.copy(), slope.copy(), np.empty_like(slope)
    before = dot(gradient, gradient)
    for step in range(n_steps):
        for i in range(k):
            bend[i] = dot(block[i], direction)
        curvature, length = dot(direction, bend), kind(0)
        if curvature > kind(FLATTEST) * dot(direction, direction):
            length = kind(dot(gradient, direction) / max(curvature, kind(TINY)))
        if positive:
            short = kind(_shortened(length, values, direction, free))
            fresh, length = bool(short < length), short
        for i in range(k):
            values[i] += length * direction[i]
            slope[i] -= length * bend[i]
        if step + 1 < n_steps:
            for i in range(k):
                gradient[i] = slope[i] if free[i] else kind(0)
            now = dot(gradient, gradient)
            share = kind(0) if fresh else kind(now / max(before, kind(TINY)))
            for i in range(k):
                direction[i] = gradient[i] + share * direction[i]
            before = now


@compiled
def _pruned(chosen: Whole, values: Array, slope: Array, on: NDArray[np.bool_], gram: Array, level: float) -> int:
    """How many are left of the support, moved to its front, without those of a size up to the level."""
    k, left = len(values), 0
    for j in range(k):
        if not abs(values[j]) > level:
            on[chosen[j]] = False
            row = gram[chosen[j]]
            for i in range(k):
                slope[i] += values[j] * row[chosen[i]]
    for j in range(k):
        if on[chosen[j]]:
            chosen[left], values[left], slope[left] = chosen[j], values[j], slope[j]
            left += 1
    return left


@kernel
def correct_rows(
    match: Array, codes: Array, slopes: Array, gram: Array, levels: Array, steps: tuple[int, int, int, int],
    positive: bool,
) -> None:  # fmt: skip
    """Codes (B, d) corrected in place and their slopes, from Aᵀx (B, d) and AᵀA; `steps` of a fit as `STEPS` says."""
    d, n_rounds = codes.shape[1], len(levels)
    first, grown, dropped, last = steps
    chosen, values, near = np.empty(d, np.int64), np.empty(d, codes.dtype), np.empty(d, codes.dtype)
    on = np.zeros(d, np.bool_)
    for s in range(len(codes)):
        code, slope, k = codes[s], slopes[s], 0
        for i in range(d):
            on[i] = code[i] != 0
            if on[i]:
                chosen[k], values[k] = i, code[i]
                k += 1
        _slope(slope, match[s], chosen[:k], values[:k], gram)
        for step in range(n_rounds + 1):
            if step > 0:
                for i in range(d):
                    size = slope[i] if positive else abs(slope[i])
                    if not on[i] and size > levels[step - 1, 0]:
                        on[i], chosen[k], values[k] = True, i, 0.0
                        k += 1
            for j in range(k):
                near[j] = slope[chosen[j]]
            _fit(values[:k], near[:k], chosen[:k], gram, first if step == 0 else grown, positive)
            if step > 0:
                k = _pruned(chosen[:k], values[:k], near[:k], on, gram, levels[step - 1, 1])
                _fit(values[:k], near[:k], chosen[:k], gram, last if step == n_rounds else dropped, positive)
            _slope(slope, match[s], chosen[:k], values[:k], gram)
        code[:] = 0.0
        for j in range(k):
            code[chosen[j]] = values[j]
