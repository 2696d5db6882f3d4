"""The objective of the best of J samples, row by row, and its slopes: the paper's models with a linear generator."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.divergences import laplace_kl, normal_kl
from softspike.kernels.cpu.search import search
from softspike.kernels.cpu.threads import loop, pointer, run, share

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
def _turn(data: Any) -> None:
    """A matrix turned, sixteen columns at a time: what a line of the cache holds."""
    head = carray(data, 4, np.int64)
    n_rows, n_columns = head[0], head[1]
    given = carray(pointer(head[2]), (n_rows, n_columns), np.float32)
    turned = carray(pointer(head[3]), (n_columns, n_rows), np.float32)
    begin, end = share((n_columns + 15) // 16)
    for first in range(16 * begin, min(16 * end, n_columns), 16):
        for i in range(n_rows):
            for k in range(first, min(first + 16, n_columns)):
                turned[k, i] = given[i, k]


@loop
def _forward(data: Any) -> None:
    head = carray(data, 21, np.int64)
    n, d, n_features, n_samples, key, laplace = head[0], head[1], head[2], head[3], _U(head[4]), head[5] != 0
    x = carray(pointer(head[6]), (n, n_features), np.float32)
    location, scale = carray(pointer(head[7]), (n, d), np.float32), carray(pointer(head[8]), (n, d), np.float32)
    settled, rows = carray(pointer(head[9]), (n, d), np.float32), carray(pointer(head[10]), (d, n_features), np.float32)
    level, prior = carray(pointer(head[11]), 1, np.float32)[0], carray(pointer(head[12]), 1, np.float32)[0]
    noise, z = carray(pointer(head[13]), (n, d), np.float32), carray(pointer(head[14]), (n, d), np.float32)
    rest = carray(pointer(head[15]), (n, n_features), np.float32)
    misfit, active = carray(pointer(head[16]), n, np.float32), carray(pointer(head[17]), n, np.float32)
    kl, by_location = carray(pointer(head[18]), n, np.float32), carray(pointer(head[19]), (n, d), np.float32)
    by_scale = carray(pointer(head[20]), (n, d), np.float32)
    levels = np.full(d, level, np.float32)
    work = (
        np.empty((4, d), np.float32), np.empty(d, np.float32), np.empty(n_features, np.float32),
        np.empty(d + 1, np.int32), np.empty(d + 1, np.float32),
    )  # fmt: skip
    begin, end = share(n)
    for i in range(begin, end):
        best = noise[i], z[i], rest[i]
        least = search(x[i], location[i], scale[i], levels, rows, n_samples, key, _U(i * d), laplace, work, best)
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
    slope, noise = carray(pointer(head[4]), (n, d), np.float32), carray(pointer(head[5]), (n, d), np.float32)
    z, weight = carray(pointer(head[6]), (n, d), np.float32), carray(pointer(head[7]), n, np.float32)
    kl_location, kl_scale = carray(pointer(head[8]), (n, d), np.float32), carray(pointer(head[9]), (n, d), np.float32)
    by_location, by_scale = carray(pointer(head[10]), (n, d), np.float32), carray(pointer(head[11]), (n, d), np.float32)
    by_settled = carray(pointer(head[12]), (n, d), np.float32)
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
    rows = torch.empty(d, n_features)
    run(_turn, (n_features, d), atoms.detach().contiguous(), rows)
    shapes = ((n, d), (n, d), (n, n_features), (n,), (n,), (n,), (n, d), (n, d))
    winner = Winner._make(torch.empty(shape) for shape in shapes)
    numbers = (n, d, n_features, n_samples, key, int(laplace))
    given = [part.detach().contiguous() for part in (x, location, scale, settled)]
    run(_forward, numbers, *given, rows, level, prior, *winner)
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
