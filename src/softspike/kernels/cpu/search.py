"""The best of J samples for a linear generator: none is stored but the best, and only what is not 0 is decoded."""

import numpy as np

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.draws import base_draws, laplace_noise, to_noise
from softspike.kernels.cpu.functions import Array, exponential
from softspike.kernels.cpu.gamma import gamma_noise
from softspike.kernels.cpu.vectors import Places, misfit, places_of

__all__ = ["room", "search"]

_F, _U, _HALF = np.float32, np.uint64, np.float32(0.5)
_NEARLY = _F(1 + 1e-5)  # more than rounding may make of exp(−λ/b)
_LINE = 16  # numbers in the widest vector
Work = tuple[Array, Array, Array, Array, Array, Places, Array]
Found = tuple[Array, Array, Array, Array]  # noise, Gamma noise, z, x − Az


@compiled
def room(d: int, n_features: int) -> Work:
    """What a search works in."""
    four, places = np.empty((4, d), np.float32), np.empty(d + _LINE, np.int32)
    level, z, values = np.empty(d, np.float32), np.empty(d, np.float32), np.empty(d + _LINE, np.float32)
    return four, np.ones((4, d), np.float32), level, z, np.empty(n_features, np.float32), places, values


@compiled
def _code(noise: np.float32, location: np.float32, scale: np.float32, level: np.float32) -> np.float32:
    """z = T(s; λ, μ), the shifted soft-threshold of s = μ + scale·noise."""
    moved = scale * noise
    kept = (moved - level if moved > 0 else moved + level) + location
    return kept if abs(moved) > level else _F(0)


@compiled
def _codes(
    noise: Array, location: Array, scale: Array, level: Array, z: Array, places: Places, values: Array
) -> int:  # fmt: skip
    """The codes that are not 0, and where they are; how many."""
    for i in range(len(z)):
        z[i] = _code(noise[i], location[i], scale[i], level[i])
    n = places_of(z, places)
    for j in range(n):
        values[j] = z[places[j]]
    return n


@compiled
def _limits(scale: Array, level: Array, limit: Array) -> None:
    """exp(−λ/b) and a little more: 1 − 2|u − ½| is below it where a Laplace variable is beyond its level."""
    for i in range(len(limit)):
        limit[i] = _NEARLY * exponential(-level[i] / scale[i])


@compiled
def _rare_codes(
    u: Array, limit: Array, location: Array, scale: Array, level: Array, z: Array, places: Places, values: Array
) -> int:  # fmt: skip
    """The same for Laplace variables that are known by their uniform numbers: only the few that may be beyond their
    level are computed. One of many thousands is not, and its value is 0."""
    for i in range(len(z)):
        z[i] = _F(1) if _F(1) - _F(2) * abs(u[i] - _HALF) < limit[i] else _F(0)
    n = places_of(z, places)
    for j in range(n):
        values[j] = u[places[j]]
    for j in range(n, (n + _LINE - 1) // _LINE * _LINE):
        values[j] = _HALF
    for j in range((n + _LINE - 1) // _LINE * _LINE):  # whole vectors: what is too much is not looked at
        values[j] = laplace_noise(values[j])
    for j in range(n):
        i = places[j]
        values[j] = _code(values[j], location[i], scale[i], level[i])
    return n


@compiled
def search(
    x: Array, location: Array, scale: Array, shape: Array, unit: Array, rows: Array, n_samples: int, key: np.uint64,
    first: np.uint64, laplace: bool, work: Work, best: Found,
) -> np.float32:  # fmt: skip
    """The best sample of one row; the first of equals, and where none is a number the first. Returns its ‖x − Az‖².

    A level is its unit times a Gamma variable of the given shape, or the unit itself where the shape is empty.
    """
    base, gamma, level, z, rest, places, values = work
    least, rare = _F(np.inf), laplace and len(shape) == 0
    if rare:
        _limits(scale, unit, level)
    for group in range((n_samples + 3) // 4):
        base_draws(key, first, _U(group), laplace, base)
        if len(shape) > 0:
            gamma_noise(key, first, _U(group), shape, gamma)
        for lane in range(min(4, n_samples - 4 * group)):
            if rare:
                n = _rare_codes(base[lane], level, location, scale, unit, z, places, values)
            else:
                to_noise(base[lane], laplace)
                for i in range(len(level)):
                    level[i] = gamma[lane, i] * unit[i]
                n = _codes(base[lane], location, scale, level, z, places, values)
            error = misfit(x, rows, places, values, n, rest)
            if error < least or group + lane == 0:
                least = error
                best[0][:], best[1][:], best[2][:], best[3][:] = base[lane], gamma[lane], _F(0), rest
                for j in range(n):
                    best[2][places[j]] = values[j]
    if rare:
        to_noise(best[0], laplace)
    return least
