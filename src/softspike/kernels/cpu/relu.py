"""Backwards through a ReLU, and the bias before it, in one pass."""

from typing import Any

import numpy as np
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.threads import loop, matrix, run, share, vector

__all__ = ["relu_back_"]

_F = np.float32


@loop
def _back(data: Any) -> None:
    head = carray(data, 5, np.int64)
    n_rows, n = head[0], head[1]
    grad, hidden = matrix(head[2], n_rows, n), matrix(head[3], n_rows, n)
    total = vector(head[4], n)
    begin, end = share((n + 15) // 16)  # whole lines of the cache, so that threads do not share one
    begin, end = 16 * begin, min(16 * end, n)
    sums = np.zeros(end - begin, np.float32)
    for i in range(n_rows):
        g, h = grad[i, begin:end], hidden[i, begin:end]  # from 0 on, and sums apart: only so do the loops vectorise
        for k in range(len(sums)):
            own = g[k]
            kept = own if h[k] > 0 else _F(0)
            g[k] = kept
            sums[k] += kept
    total[begin:end] = sums


def relu_back_(grad: Tensor, hidden: Tensor, by_bias: Tensor) -> None:
    """grad (B, n) ← 0 where hidden is 0, and by_bias (n,) ← the sum of its rows."""
    run(_back, tuple(grad.shape), grad, hidden, by_bias)
