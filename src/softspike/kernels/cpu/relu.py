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
    total[begin:end] = _F(0)
    for i in range(n_rows):
        for k in range(begin, end):
            grad[i, k] = grad[i, k] if hidden[i, k] > 0 else _F(0)
            total[k] += grad[i, k]


def relu_back_(grad: Tensor, hidden: Tensor, by_bias: Tensor) -> None:
    """grad (B, n) ← 0 where hidden is 0, and by_bias (n,) ← the sum of its rows."""
    run(_back, tuple(grad.shape), grad, hidden, by_bias)
