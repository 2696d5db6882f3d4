"""The best of J samples for a linear generator: none is stored but the best, and only what is not 0 is decoded."""

import numpy as np
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.draws import base_noise
from softspike.kernels.cpu.functions import Array
from softspike.kernels.cpu.gamma import gamma_noise

__all__ = ["room", "search"]

_F, _U = np.float32, np.uint64
Places = NDArray[np.int32]
Work = tuple[Array, Array, Array, Array, Array, Places, Array]
Found = tuple[Array, Array, Array, Array]  # noise, Gamma noise, z, x − Az


@compiled
def room(d: int, n_features: int) -> Work:
    """What a search works in."""
    four, places = np.empty((4, d), np.float32), np.empty(d + 1, np.int32)
    level, z, values = np.empty(d, np.float32), np.empty(d, np.float32), np.empty(d + 1, np.float32)
    return four, np.ones((4, d), np.float32), level, z, np.empty(n_features, np.float32), places, values


@compiled
def _codes(noise: Array, location: Array, scale: Array, level: Array, z: Array) -> None:
    """z = T(s; λ, μ), the shifted soft-threshold of s = μ + scale·noise."""
    for i in range(len(z)):
        moved = scale[i] * noise[i]
        kept = (moved - level[i] if moved > 0 else moved + level[i]) + location[i]
        z[i] = kept if abs(moved) > level[i] else _F(0)


@compiled
def _active(z: Array, places: Places, values: Array) -> int:
    """Where z is not 0, and what it is there; how many. Without a branch, which would be mispredicted at each."""
    n = 0
    for i in range(len(z)):
        places[n] = i
        n += z[i] != _F(0)
    for j in range(n):
        values[j] = z[places[j]]
    return n


@compiled
def _error(x: Array, rows: Array, places: Places, values: Array, n: int, rest: Array) -> np.float32:
    """‖x − Σ valueⱼ·atomⱼ‖², eight atoms at a time, which spares seven passes over the rest."""
    rest[:] = x
    j = 0
    while j + 8 <= n:
        a, b, c, d = rows[places[j]], rows[places[j + 1]], rows[places[j + 2]], rows[places[j + 3]]
        e, f, g, h = rows[places[j + 4]], rows[places[j + 5]], rows[places[j + 6]], rows[places[j + 7]]
        p, q, r, s = values[j], values[j + 1], values[j + 2], values[j + 3]
        t, u, v, w = values[j + 4], values[j + 5], values[j + 6], values[j + 7]
        for i in range(len(rest)):
            first = p * a[i] + q * b[i] + r * c[i] + s * d[i]
            rest[i] -= first + (t * e[i] + u * f[i] + v * g[i] + w * h[i])
        j += 8
    while j < n:
        atom, value = rows[places[j]], values[j]
        for i in range(len(rest)):
            rest[i] -= value * atom[i]
        j += 1
    total = _F(0)
    for i in range(len(rest)):
        total += rest[i] * rest[i]
    return total


@compiled
def search(
    x: Array, location: Array, scale: Array, shape: Array, unit: Array, rows: Array, n_samples: int, key: np.uint64,
    first: np.uint64, laplace: bool, work: Work, best: Found,
) -> np.float32:  # fmt: skip
    """The best sample of one row; the first of equals, and where none is a number the first. Returns its ‖x − Az‖².

    A level is its unit times a Gamma variable of the given shape, or the unit itself where the shape is empty.
    """
    noise, gamma, level, z, rest, places, values = work
    least = _F(np.inf)
    for group in range((n_samples + 3) // 4):
        base_noise(key, first, _U(group), laplace, noise)
        if len(shape) > 0:
            gamma_noise(key, first, _U(group), shape, gamma)
        for lane in range(min(4, n_samples - 4 * group)):
            for i in range(len(level)):
                level[i] = gamma[lane, i] * unit[i]
            _codes(noise[lane], location, scale, level, z)
            error = _error(x, rows, places, values, _active(z, places, values), rest)
            if error < least or group + lane == 0:
                least = error
                best[0][:], best[1][:], best[2][:], best[3][:] = noise[lane], gamma[lane], z, rest
    return least
