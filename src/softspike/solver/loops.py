"""Loops that compiled solvers share, in the subset of Python that numba compiles."""

import numpy as np
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled

__all__ = ["Array", "Whole", "dot", "place_of_largest", "residual", "solve"]

_BLOCK = 64
Array = NDArray[np.floating]
Whole = NDArray[np.integer]


@compiled
def _size(bits: Whole) -> int:
    """The largest |value|, as bits: those of positive floats are in the order of the floats, and vectorise."""
    largest, most = 0, 2 * ((1 << (8 * bits.itemsize - 2)) - 1) + 1  # all bits but the sign
    for i in range(len(bits)):
        largest = max(largest, bits[i] & most)
    return largest


@compiled
def place_of_largest(bits: Whole) -> int:
    """Where the largest |value| is, the first of equals: the maximum, the block that holds it, the place in it."""
    n, largest, best = len(bits), _size(bits), 0
    while best + _BLOCK <= n and _size(bits[best : best + _BLOCK]) < largest:
        best += _BLOCK
    while _size(bits[best : best + 1]) < largest:
        best += 1
    return best


@compiled
def solve(triangle: Array, right: Array, first: bool) -> None:
    """Lt = right where first, and then Lᵀγ = t, in place."""
    n = len(right)
    if first:
        for k in range(n):
            for j in range(k):
                right[k] -= triangle[k, j] * right[j]
            right[k] /= triangle[k, k]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            right[k] -= triangle[j, k] * right[j]
        right[k] /= triangle[k, k]


@compiled
def residual(x: Array, rows: Array, chosen: Whole, codes: Array, out: Array) -> float:
    """r = x − Σ codeⱼ·aⱼ, and ‖r‖²."""
    out[:] = x
    for j in range(len(codes)):
        weight, atom = out.dtype.type(codes[j]), rows[chosen[j]]
        for i in range(len(out)):
            out[i] -= weight * atom[i]
    energy = 0.0
    for i in range(len(out)):
        energy += out[i] * out[i]
    return energy


@compiled
def dot(a: Array, b: Array) -> float | np.floating:
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
