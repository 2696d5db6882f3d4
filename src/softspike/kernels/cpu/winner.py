"""The objective of the best of J samples, row by row, and its slopes: the paper's models with a linear generator."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.divergences import laplace_kl, normal_kl
from softspike.kernels.cpu.rows import turned
from softspike.kernels.cpu.search import room, search
from softspike.kernels.cpu.threads import loop, matrix, run, share, vector

__all__ = ["Winner", "slopes_of", "winner_of"]

_F, _U = np.float32, np.uint64


class Winner(NamedTuple):
    """The sample of each input with the smallest ‖x − Az‖², and its input's divergence from the prior."""

    noise: Tensor  # (B, d)
    codes: Tensor  # z, (B, d)
    rest: Tensor  # x − Az, (B, D)
    misfit: Tensor  # mean over features of (x − Az)², (B,)
    active: Tensor  # how many of z are not 0, (B,)
    kl: Tensor  # (B,)
    by_location: Tensor  # ∂kl/∂μ, (B, d)
    by_scale: Tensor  # ∂kl/∂(scale of the settled law), (B, d)


@loop
def _forward(data: Any) -> None:
    head = carray(data, 21, np.int64)
    n, d, n_features, n_samples, key, laplace = head[0], head[1], head[2], head[3], _U(head[4]), head[5] != 0
    x = matrix(head[6], n, n_features)
    location, scale = matrix(head[7], n, d), matrix(head[8], n, d)
    settled, rows = matrix(head[9], n, d), matrix(head[10], d, n_features)
    level, prior = vector(head[11], 1)[0], vector(head[12], 1)[0]
    noise, z = matrix(head[13], n, d), matrix(head[14], n, d)
    rest = matrix(head[15], n, n_features)
    misfit, active = vector(head[16], n), vector(head[17], n)
    kl, by_location = vector(head[18], n), matrix(head[19], n, d)
    by_scale = matrix(head[20], n, d)
    work, unit, none, ones = (
        room(d, n_features),
        np.full(d, level, np.float32),
        np.empty(0, np.float32),
        np.empty(d, np.float32),
    )
    begin, end = share(n)
    for i in range(begin, end):
        best = noise[i], ones, z[i], rest[i]
        least = search(x[i], location[i], scale[i], none, unit, rows, n_samples, key, _U(i * d), laplace, work, best)
        misfit[i] = least / _F(n_features)
        active[i] = _F(np.count_nonzero(z[i]))
        if laplace:
            kl[i] = laplace_kl(location[i], settled[i], prior, by_location[i], by_scale[i])
        else:
            kl[i] = normal_kl(location[i], settled[i], prior, by_location[i], by_scale[i])


@loop
def _backward(data: Any) -> None:
    """∂/∂μ and ∂/∂scale of both laws from ∂/∂z, row by row."""
    head = carray(data, 13, np.int64)
    n, d, active_slope, silent_slope = head[0], head[1], _F(head[2]), _F(head[3])
    slope, noise = matrix(head[4], n, d), matrix(head[5], n, d)
    z, weight = matrix(head[6], n, d), vector(head[7], n)
    kl_location, kl_scale = matrix(head[8], n, d), matrix(head[9], n, d)
    by_location, by_scale = matrix(head[10], n, d), matrix(head[11], n, d)
    by_settled = matrix(head[12], n, d)
    begin, end = share(n)
    for i in range(begin, end):
        w = weight[i]
        for k in range(d):
            on = z[i, k] != _F(0)
            g = slope[i, k] if on else silent_slope * slope[i, k]
            by_location[i, k] = (active_slope * g if on else g) + w * kl_location[i, k]
            by_scale[i, k] = g * noise[i, k]
            by_settled[i, k] = w * kl_scale[i, k]


def winner_of(
    x: Tensor, location: Tensor, scale: Tensor, settled: Tensor, level: Tensor, prior: Tensor, atoms: Tensor,
    n_samples: int, key: int, laplace: bool,
) -> Winner:  # fmt: skip
    """The best of J draws of the shifted soft-threshold at λ of Laplace or Normal variables, for x̂ = Az.

    x (B, D), location, scale and settled (B, d), atoms (D, d), level and the prior's scale numbers; all float32 on a
    CPU. The noise of element row·d + column is that of `softspike.kernels.counter` at step 0 under this key.
    """
    (n, d), n_features = location.shape, x.shape[1]
    shapes = ((n, d), (n, d), (n, n_features), (n,), (n,), (n,), (n, d), (n, d))
    winner = Winner._make(torch.empty(shape) for shape in shapes)
    numbers = (n, d, n_features, n_samples, key, int(laplace))
    given = [part.detach().contiguous() for part in (x, location, scale, settled)]
    run(_forward, numbers, *given, turned(atoms), level, prior, *winner)
    return winner


def slopes_of(
    noise: Tensor, codes: Tensor, kl_by_location: Tensor, kl_by_scale: Tensor, by_codes: Tensor, by_kl: Tensor,
    active_slope: float, silent_slope: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """∂/∂location, ∂/∂scale and ∂/∂settled, each (B, d), where the loss has the slopes ∂/∂z (B, d) and ∂/∂kl (B,).

    The two slopes are those of `softspike.threshold.SLOPES`, 0, 1 or 2.
    """
    slopes = torch.empty_like(codes), torch.empty_like(codes), torch.empty_like(codes)
    numbers = (*codes.shape, int(active_slope), int(silent_slope))
    run(_backward, numbers, by_codes, noise, codes, by_kl.contiguous(), kl_by_location, kl_by_scale, *slopes)
    return slopes
