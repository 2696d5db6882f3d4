"""The loops of the compiled lasso: coordinate descent over the few atoms that matter, one sample after another."""

import numpy as np

from softspike.kernels.compiled import compiled, kernel
from softspike.solver.loops import Array, Whole

__all__ = ["descend_rows"]

_NEW = 32  # atoms that may join in a round
_SOLVED = 0.1  # of the gap at hand, to which a round descends over the atoms at work
_LOOK_EVERY, _SWEEPS = 3, 50  # sweeps between looks at the gap, and in a round at most


@compiled
def _gap(energy: float, known: Array, codes: Array, slope: Array, largest: float) -> float:
    """`gap_of_slope` of one sample at λ = 1, summed in float64."""
    product, shrunk, size = energy, 0.0, 0.0
    for j in range(len(codes)):
        product -= float(known[j]) * codes[j]
        shrunk += float(slope[j]) * codes[j]
        size += abs(codes[j])
    residual, scale = product - shrunk, min(1.0, 1.0 / max(largest, 1e-30))
    return 0.5 * residual + size - scale * product + 0.5 * scale * scale * residual


@compiled
def _sweep(codes: Array, slope: Array, gram: Array, positive: bool) -> None:
    """zᵢ ← soft(zᵢ + aᵢᵀr/‖aᵢ‖², 1/‖aᵢ‖²) for one i after the other, aᵢᵀr kept up to date."""
    one = slope.dtype.type(1)
    for i in range(len(codes)):
        curvature = gram[i, i]
        if curvature <= 0:
            continue
        aim = codes[i] * curvature + slope[i]
        new = (aim - one if aim > one else (aim + one if aim < -one and not positive else 0 * one)) / curvature
        move = new - codes[i]
        if move != 0:
            codes[i], row = new, gram[i]
            for j in range(len(codes)):
                slope[j] -= move * row[j]


@compiled
def _largest(slope: Array, positive: bool) -> float:
    largest = slope.dtype.type(0)
    for j in range(len(slope)):
        largest = max(largest, slope[j] if positive else abs(slope[j]))
    return float(largest)


@compiled
def _solve(
    energy: float, known: Array, codes: Array, slope: Array, gram: Array, goal: float, n_sweeps: int, positive: bool
) -> int:
    """Sweeps over the atoms at work until their own gap is at the goal; how many they were."""
    for sweep in range(1, n_sweeps + 1):
        _sweep(codes, slope, gram, positive)
        if sweep % _LOOK_EVERY == 0 and _gap(energy, known, codes, slope, _largest(slope, positive)) <= goal:
            return sweep
    return n_sweeps


@compiled
def _join(work: Whole, codes: Array, n: int, slope: Array, largest: float, positive: bool) -> int:
    """Drop atoms whose code is 0, and let those join that violate |aᵢᵀr| ≤ 1 most; how many there are then."""
    kept = 0
    for j in range(n):
        if codes[j] != 0:
            work[kept], codes[kept] = work[j], codes[j]
            kept += 1
    share, count = 0.15, _NEW + 1
    while count > _NEW and share < 0.9:
        share += 0.15
        level, count = slope.dtype.type(1 + share * (largest - 1)), 0
        for i in range(len(slope)):
            count += (slope[i] if positive else abs(slope[i])) > level
    n = kept
    for i in range(len(slope)):
        if (slope[i] if positive else abs(slope[i])) > level and n < len(work) and n < kept + _NEW:
            known = False
            for j in range(kept):
                known |= work[j] == i
            if not known:
                work[n], codes[n] = i, 0
                n += 1
    return n


@compiled
def _spread(work: Whole, codes: Array, gram: Array, start: Array, slope: Array) -> None:
    """Aᵀr = Aᵀx − AᵀAz."""
    slope[:] = start
    for j in range(len(work)):
        code, row = codes[j], gram[work[j]]
        if code != 0:
            for i in range(len(slope)):
                slope[i] -= code * row[i]


@compiled
def _descend(
    start: Array, slope: Array, gram: Array, energy: float, floor: float, n_sweeps: int, positive: bool,
    work: Whole, codes: Array, local: tuple[Array, Array, Array], n: int,
) -> tuple[int, float, int]:  # fmt: skip
    """One sample from n atoms at work; how many there are in the end, the gap, and the sweeps it took."""
    known, inner, square = local
    done, warm = 0, n > 0
    if _largest(start, positive) <= 1:  # nothing exceeds λ: 0 is the solution
        return 0, 0.0, 0
    _spread(work[:n], codes[:n], gram, start, slope)
    while True:
        largest = _largest(slope, positive)
        for j in range(n):
            known[j], inner[j] = start[work[j]], slope[work[j]]
        gap = _gap(energy, known[:n], codes[:n], inner[:n], largest)
        if (gap <= floor and not (warm and done == 0)) or done >= n_sweeps:
            return n, gap, done
        n = _join(work, codes, n, slope, largest, positive)
        for j in range(n):
            known[j], inner[j], row = start[work[j]], slope[work[j]], gram[work[j]]
            for i in range(n):
                square[j, i] = row[work[i]]
        goal = max(0.3 * floor, _SOLVED * gap)
        limit = min(n_sweeps - done, _SWEEPS)
        done += _solve(energy, known[:n], codes[:n], inner[:n], square[:n, :n], goal, limit, positive)
        _spread(work[:n], codes[:n], gram, start, slope)


@kernel
def descend_rows(
    correlations: Array, gram: Array, energies: Array, floors: Array, scales: Array, n_sweeps: int, positive: bool,
    warm: bool, most: int, codes: Array, gaps: Array, steps: Whole,
) -> None:  # fmt: skip
    """Solve rows with Aᵀx (B, d), ‖x‖² and the gap to reach, all in units of λ; codes (B, d) hold the start if warm.

    Codes are written in units of their scale. No sample works with more than `most` atoms, even if that leaves a gap.
    """
    d, kind = correlations.shape[1], correlations.dtype
    slope, work, z = np.empty(d, kind), np.empty(most, np.int64), np.empty(most, kind)
    local = np.empty(most, kind), np.empty(most, kind), np.empty((most, most), kind)
    for s in range(len(correlations)):
        n = 0
        for i in range(d):
            if warm and codes[s, i] != 0:
                if n < most:
                    work[n], z[n] = i, codes[s, i]
                    n += 1
                codes[s, i] = 0
        n, gap, done = _descend(
            correlations[s], slope, gram, energies[s], floors[s], n_sweeps, positive, work, z, local, n
        )
        for j in range(n):
            codes[s, work[j]] = z[j] * scales[s]
        gaps[s], steps[s] = gap, done
