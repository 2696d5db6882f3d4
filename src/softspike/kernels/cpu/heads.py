"""Between a network's heads and the winner of J samples, in one pass each way: scales forwards, slopes backwards."""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.functions import exponential
from softspike.kernels.cpu.threads import loop, matrix, numbers, run, share, vector

__all__ = ["head_slopes_of", "scales_of"]

_F = np.float32


@loop
def _scales(data: Any) -> None:
    head = carray(data, 6, np.int64)
    n, d, given = head[0], head[1], vector(head[2], 3)
    raw, settled, scale = matrix(head[3], n, d), matrix(head[4], n, d), matrix(head[5], n, d)
    power, omega, limit = given[0], given[1], given[2]
    begin, end = share(n)
    for i in range(begin, end):
        for k in range(d):
            value = exponential(power * min(max(raw[i, k], -limit), limit))
            settled[i, k] = value if raw[i, k] == raw[i, k] else raw[i, k]  # what is no number stays none
            scale[i, k] = omega * settled[i, k]


@loop
def _slopes(data: Any) -> None:
    head = carray(data, 14, np.int64)
    n, d, active_slope, silent_slope = head[0], head[1], _F(head[2]), _F(head[3])
    slope, noise, z = matrix(head[4], n, d), matrix(head[5], n, d), matrix(head[6], n, d)
    kl_location, kl_scale = matrix(head[7], n, d), matrix(head[8], n, d)
    raw, settled, weight = matrix(head[9], n, d), matrix(head[10], n, d), vector(head[12], 1)[0]
    given = vector(head[11], 3)
    power, omega, limit = given[0], given[1], given[2]
    by_heads = matrix(head[13], 2 * n, d)
    begin, end = share(n)
    for i in range(begin, end):
        for k in range(d):
            on = z[i, k] != _F(0)
            g = slope[i, k] if on else silent_slope * slope[i, k]
            by_heads[i, k] = (active_slope * g if on else g) + weight * kl_location[i, k]
            by_log = (weight * kl_scale[i, k] + omega * g * noise[i, k]) * settled[i, k] * power
            by_heads[n + i, k] = _F(0) if abs(raw[i, k]) >= limit else by_log


def scales_of(raw: Tensor, power: float, omega: float, limit: float) -> tuple[Tensor, Tensor]:
    """exp(power·raw), with |raw| at most the limit, and ω times that: the scales that settle and those to draw with."""
    settled, scale = torch.empty_like(raw), torch.empty_like(raw)
    run(_scales, tuple(raw.shape), numbers(power, omega, limit), raw, settled, scale)
    return settled, scale


def head_slopes_of(
    by_codes: Tensor, noise: Tensor, codes: Tensor, kl_by_location: Tensor, kl_by_scale: Tensor, by_kl: Tensor,
    raw: Tensor, settled: Tensor, power: float, omega: float, limit: float, slopes: tuple[float, float],
) -> Tensor:  # fmt: skip
    """∂/∂location and ∂/∂raw, (2, B, d): `winner.slopes_of` followed by what `scales_of` did, backwards.

    The loss has the slopes ∂/∂z (B, d), and ∂/∂kl, a number that all inputs share.
    """
    by_heads = torch.empty(2, *codes.shape)
    whole, three = (*codes.shape, *(int(slope) for slope in slopes)), numbers(power, omega, limit)
    run(_slopes, whole, by_codes, noise, codes, kl_by_location, kl_by_scale, raw, settled, three, by_kl, by_heads)
    return by_heads
