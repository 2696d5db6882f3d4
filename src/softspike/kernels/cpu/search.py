"""The best of J samples for a linear generator: none is stored but the best, and only what is not 0 is decoded."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray
from numpy.typing import NDArray
from torch import Tensor

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.draws import Array, base_noise
from softspike.kernels.cpu.threads import loop, pointer, run, share

__all__ = ["Best", "best_of"]

_F, _U = np.float32, np.uint64
Places = NDArray[np.int32]


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
def _search(
    x: Array, location: Array, scale: Array, level: Array, rows: Array, n_samples: int, key: np.uint64,
    first: np.uint64, laplace: bool, work: tuple[Array, Array, Array, Places, Array], best: tuple[Array, Array, Array],
) -> None:  # fmt: skip
    """The best sample of one row; the first of equals, and the first where none is a number."""
    noise, z, rest, places, values = work
    least = _F(np.inf)
    for group in range((n_samples + 3) // 4):
        base_noise(key, first, _U(group), laplace, noise)
        for lane in range(min(4, n_samples - 4 * group)):
            _codes(noise[lane], location, scale, level, z)
            error = _error(x, rows, places, values, _active(z, places, values), rest)
            if error < least or group + lane == 0:
                least = error
                best[0][:], best[1][:], best[2][:] = noise[lane], z, rest


@loop
def _loop(data: Any) -> None:
    head = carray(data, 14, np.int64)
    n, d, n_features, n_samples, key, laplace = head[0], head[1], head[2], head[3], _U(head[4]), head[5] != 0
    x = carray(pointer(head[6]), (n, n_features), np.float32)
    location, scale = carray(pointer(head[7]), (n, d), np.float32), carray(pointer(head[8]), (n, d), np.float32)
    level, rows = carray(pointer(head[9]), d, np.float32), carray(pointer(head[10]), (d, n_features), np.float32)
    noise, z = carray(pointer(head[11]), (n, d), np.float32), carray(pointer(head[12]), (n, d), np.float32)
    rest = carray(pointer(head[13]), (n, n_features), np.float32)
    work = (
        np.empty((4, d), np.float32), np.empty(d, np.float32), np.empty(n_features, np.float32),
        np.empty(d + 1, np.int32), np.empty(d + 1, np.float32),
    )  # fmt: skip
    begin, end = share(n)
    for i in range(begin, end):
        out = noise[i], z[i], rest[i]
        _search(x[i], location[i], scale[i], level, rows, n_samples, key, _U(i * d), laplace, work, out)


class Best(NamedTuple):
    """The sample of each input with the smallest ‖x − Az‖²."""

    noise: Tensor  # (B, d)
    codes: Tensor  # z, (B, d)
    rest: Tensor  # x − Az, (B, D)


@torch.no_grad()
def best_of(
    x: Tensor, location: Tensor, scale: Tensor, level: Tensor, atoms: Tensor, n_samples: int, key: int, laplace: bool
) -> Best:
    """The best of J draws of the shifted soft-threshold at λ of Laplace or Normal variables, for x̂ = Az.

    x (B, D), location and scale (B, d), level (d,), atoms (D, d), all float32 on a CPU. The noise of element
    row·d + column is that of `softspike.kernels.counter` at step 0 under this key.
    """
    x, location, scale, level, rows = (part.contiguous() for part in (x, location, scale, level, atoms.T))
    best = Best(torch.empty_like(location), torch.empty_like(location), torch.empty_like(x))
    numbers = (*location.shape, x.shape[1], n_samples, key, int(laplace))
    run(_loop, numbers, x, location, scale, level, rows, *best)
    return best
