"""The best of J samples where levels are Gamma variables: the noise of both, for one draw with gradients."""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.rows import turned
from softspike.kernels.cpu.search import room, search
from softspike.kernels.cpu.threads import loop, matrix, run, share

__all__ = ["best_noise"]


@loop
def _loop(data: Any) -> None:
    head = carray(data, 14, np.int64)
    n, d, n_features, n_samples, key, laplace = head[0], head[1], head[2], head[3], np.uint64(head[4]), head[5] != 0
    x, rows = (
        matrix(head[6], n, n_features),
        matrix(head[11], d, n_features),
    )
    location, scale = matrix(head[7], n, d), matrix(head[8], n, d)
    shape, unit = matrix(head[9], n, d), matrix(head[10], n, d)
    noise, gamma = matrix(head[12], n, d), matrix(head[13], n, d)
    work, z, rest = room(d, n_features), np.empty(d, np.float32), np.empty(n_features, np.float32)
    begin, end = share(n)
    for i in range(begin, end):
        first, best = np.uint64(i * d), (noise[i], gamma[i], z, rest)
        search(x[i], location[i], scale[i], shape[i], unit[i], rows, n_samples, key, first, laplace, work, best)


@torch.no_grad()
def best_noise(
    x: Tensor, location: Tensor, scale: Tensor, shape: Tensor, rate: Tensor, atoms: Tensor, n_samples: int, key: int,
    laplace: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The noise of the best draw of s and that of its levels λ ~ Gamma(shape, rate), each (B, d).

    x (B, D), atoms (D, d), the others (B, d); all float32 on a CPU. Both are as `softspike.kernels.counter` has them.
    """
    numbers = (*location.shape, x.shape[1], n_samples, key, int(laplace))
    given = [part.detach().contiguous() for part in (x, location, scale, shape, rate.reciprocal())]
    noise, gamma = torch.empty_like(given[1]), torch.empty_like(given[1])
    run(_loop, numbers, *given, turned(atoms), noise, gamma)
    return noise, gamma
