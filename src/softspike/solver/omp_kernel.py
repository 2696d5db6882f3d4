"""The loops of a pursuit, one sample after another."""

import math

import numpy as np
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled, kernel
from softspike.solver.loops import Array, Whole, dot, place_of_largest, residual, solve

__all__ = ["pursue_rows"]

_FRESH = 0.01  # share of ‖r‖² down to which it may be updated before it is computed from r again


@compiled
def _step(row: Array, atom: Array, earlier: Array, overlap: Array, scale: float, slope: Array, weight: float) -> None:
    """Aᵀq of the new direction q = (a − Σ overlapⱼ·qⱼ)·scale, from Aᵀa and the Aᵀqⱼ, and a step along it."""
    n, k, j = len(row), len(overlap), 0
    for i in range(n):
        row[i] = atom[i]
    while j + 4 <= k:  # four at a time spare three passes over the row
        a, b, c, d = overlap[j], overlap[j + 1], overlap[j + 2], overlap[j + 3]
        p, q, r, s = earlier[j], earlier[j + 1], earlier[j + 2], earlier[j + 3]
        for i in range(n):
            row[i] -= a * p[i] + b * q[i] + c * r[i] + d * s[i]
        j += 4
    while j < k:
        a, p = overlap[j], earlier[j]
        for i in range(n):
            row[i] -= a * p[i]
        j += 1
    for i in range(n):
        row[i] *= scale
        slope[i] -= weight * row[i]


@compiled
def _refresh(x: Array, rows: Array, chosen: Whole, triangle: Array, codes: Array, slope: Array) -> float:
    """Codes after one step of iterative refinement, Aᵀr and ‖r‖² from r itself."""
    r = np.empty_like(x)
    residual(x, rows, chosen, codes, r)
    rest = np.empty_like(codes)
    for j in range(len(rest)):
        rest[j] = dot(rows[chosen[j]], r)
    solve(triangle, rest, True)
    codes += rest
    energy = residual(x, rows, chosen, codes, r)
    for i in range(len(slope)):
        slope[i] = dot(rows[i], r)
    return energy


@compiled
def _restart(x: Array, rows: Array, chosen: Whole, triangle: Array, base: Array, since: Array, slope: Array) -> float:
    """Codes brought up to date and refined, Aᵀr and ‖r‖² from r itself; 0 at the atoms taken."""
    solve(triangle, since, False)
    base += since
    since[:] = 0.0
    energy = _refresh(x, rows, chosen, triangle, base, slope)
    for j in range(len(chosen)):
        slope[chosen[j]] = 0.0
    return energy


@compiled
def _pursue(
    x: Array, slope: Array, bits: Whole, rows: Array, gram: Array, least: float, faint: float, count: int,
    stop: float, taken: Whole, projections: Array, energies: Array, work: tuple[Array, Array, Array, Array, Array],
) -> int:  # fmt: skip
    """One pursuit: how many atoms it took, or −1 where they are too much alike; the rest is in the arrays."""
    directions, overlap, triangle, base, since = work
    energy = fresh = dot(x, x) * 1.0
    base[:], since[:], k = 0.0, 0.0, 0
    while k < count:
        if energy < _FRESH * fresh:
            energy = fresh = _restart(x, rows, taken[:k], triangle[:k, :k], base[:k], since[:k], slope)
        best = place_of_largest(bits)
        if not energy > stop or abs(slope[best]) <= faint:
            break
        square = 1.0
        for j in range(k):
            overlap[j] = triangle[k, j] = directions[j, best]
            square -= triangle[k, j] ** 2
        if square < least:
            return -1
        triangle[k, k] = math.sqrt(square)
        weight = slope.dtype.type(slope[best] / triangle[k, k])
        since[k] = projections[k] = weight
        taken[k], energies[k] = best, energy
        _step(directions[k], gram[best], directions, overlap[:k], slope.dtype.type(1 / triangle[k, k]), slope, weight)
        for j in range(k + 1):
            directions[k, taken[j]] = slope[taken[j]] = 0.0
        energy, k = max(energy - float(weight) ** 2, 0.0), k + 1
    solve(triangle[:k, :k], since[:k], False)
    return k


@kernel
def pursue_rows(
    x: Array, slopes: Array, bits: Whole, rows: Array, gram: Array, least: float, faint: float, counts: Whole,
    stop: Array, chosen: Whole, coefficients: Array, projections: Array, energies: Array, distinct: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Pursue every row of x (B, D), whose slopes Aᵀx (B, d) come with it, as floats and as bits, and are overwritten.

    With orthonormal directions qⱼ in the order taken, row k of L holds qⱼᵀa of the k-th atom: A_chosen = QLᵀ. Only the
    Aᵀqⱼ are kept, (K, d), and qⱼᵀa is an entry of them. `least` is the smallest squared sine that counts as distinct,
    `faint` the largest |aᵀr| that may be rounding. The codes are those when r was last computed, plus L⁻ᵀ of the
    projections since.
    """
    limit, kind = chosen.shape[1], slopes.dtype
    base, since = np.empty(limit), np.empty(limit)
    work = (np.empty((limit, slopes.shape[1]), kind), np.empty(limit, kind), np.empty((limit, limit)), base, since)
    for s in range(len(x)):
        out = chosen[s], projections[s], energies[s]
        k = _pursue(x[s], slopes[s], bits[s], rows, gram, least, faint, counts[s], stop[s], *out, work)
        if k < 0:
            distinct[s] = False
        for j in range(k):
            coefficients[s, j] = base[j] + since[j]
