"""Draws inside a compiled loop: the same numbers as `softspike.kernels.counter`, four samples of a row at a time."""

import math

import numpy as np

from softspike.kernels import counter
from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.functions import Array, logarithm

__all__ = ["base_draws", "laplace_noise", "normals", "to_noise", "uniforms"]

_U, _F, _I = np.uint64, np.float32, np.int32

# Words of 32 bits live in 64: their products are whole there, and the loop vectorises.
_MASK, _HALF_WAY, _NINE = _U(0xFFFFFFFF), _U(32), _U(9)
_MULTIPLY_A, _MULTIPLY_B = _U(counter._MULTIPLY_A), _U(counter._MULTIPLY_B)
_RAISE_A, _RAISE_B = _U(counter._RAISE_A), _U(counter._RAISE_B)
_ROUNDS, _BASE = counter.ROUNDS, _U(counter.BASE)
_HALF, _STEP, _SMALLEST = _F(0.5), _F(2.0**-23), _F(1e-6)
_PI = _F(math.pi)

# sin h and cos h by Taylor series on [−π/2, π/2].
_SINE = tuple(_F((-1) ** k / math.factorial(2 * k + 1)) for k in range(5, -1, -1))
_COSINE = tuple(_F((-1) ** k / math.factorial(2 * k)) for k in range(6, -1, -1))


@compiled
def _unit(word: np.uint64) -> np.float32:
    return (_F(_I(word >> _NINE)) + _HALF) * _STEP


@compiled
def uniforms(key: np.uint64, first: np.uint64, group: np.uint64, stream: np.uint64, out: Array) -> None:
    """Philox of (element, group, 0, stream) for elements from `first` on, as numbers in (0, 1), (4, n)."""
    o0, o1, o2, o3 = out[0], out[1], out[2], out[3]
    for i in range(out.shape[1]):
        a, b, c, d = first + _U(i), group, _U(0), stream
        low, high = key & _MASK, key >> _HALF_WAY
        for _ in range(_ROUNDS):
            p, q = _MULTIPLY_B * c, _MULTIPLY_A * a
            a, b, c, d = (p >> _HALF_WAY) ^ b ^ low, p & _MASK, (q >> _HALF_WAY) ^ d ^ high, q & _MASK
            low, high = (low + _RAISE_A) & _MASK, (high + _RAISE_B) & _MASK
        o0[i], o1[i], o2[i], o3[i] = _unit(a), _unit(b), _unit(c), _unit(d)


@compiled
def laplace_noise(u: np.float32) -> np.float32:
    """−sign(u−½)·log max(1 − 2|u−½|, 1e-6), as `softspike.kernels.counter.laplace_noise`."""
    centred = u - _HALF
    size = -logarithm(max(_F(1) - _F(2) * abs(centred), _SMALLEST))
    return size if centred > 0 else -size


@compiled
def normals(one: Array, other: Array) -> None:
    """Two standard normals from two uniforms, in place (Box and Muller), by sine and cosine of half the angle."""
    for i in range(len(one)):
        half = _PI * (other[i] - _HALF)  # within ±π/2
        t = half * half
        s, c = _SINE[0], _COSINE[0]
        for k in _SINE[1:]:
            s = s * t + k
        for k in _COSINE[1:]:
            c = c * t + k
        s = half * s
        radius = _F(math.sqrt(_F(-2) * logarithm(one[i])))
        one[i], other[i] = radius * (s * s - c * c), _F(-2) * radius * s * c


@compiled
def base_draws(key: np.uint64, first: np.uint64, group: np.uint64, laplace: bool, out: Array) -> None:
    """What samples 4·group … 4·group + 3 are made of, for the elements from `first` on, (4, n): uniform numbers, of
    which `to_noise` makes Laplace variables, or standard normals."""
    uniforms(key, first, group, _BASE, out)
    if not laplace:
        normals(out[0], out[1])
        normals(out[2], out[3])


@compiled
def to_noise(row: Array, laplace: bool) -> None:
    """Standard noise from base draws, in place."""
    if laplace:
        for i in range(len(row)):
            row[i] = laplace_noise(row[i])
