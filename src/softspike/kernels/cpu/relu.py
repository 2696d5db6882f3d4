"""Backwards through a ReLU, and the bias before it, in one pass."""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.bfloat16 import low_matrix, raised
from softspike.kernels.cpu.threads import loop, matrix, run, share, vector

__all__ = ["relu_back_"]

_F, _U16, _I16 = np.float32, np.uint16, np.int16
_LINE = 32  # whole lines of the cache, so that threads do not share one


@compiled
def _columns(n: int) -> tuple[int, int]:
    """The first column of this thread, and the first of the next."""
    begin, end = share((n + _LINE - 1) // _LINE)
    return _LINE * begin, min(_LINE * end, n)


@loop
def _back(data: Any) -> None:
    head = carray(data, 5, np.int64)
    n_rows, n = head[0], head[1]
    grad, hidden = matrix(head[2], n_rows, n), matrix(head[3], n_rows, n)
    begin, end = _columns(n)
    sums = np.zeros(end - begin, np.float32)
    for i in range(n_rows):
        g, h = grad[i, begin:end], hidden[i, begin:end]  # from 0 on, and sums apart: only so do the loops vectorise
        for k in range(len(sums)):
            own = g[k]
            kept = own if h[k] > 0 else _F(0)
            g[k] = kept
            sums[k] += kept
    vector(head[4], n)[begin:end] = sums


@loop
def _back_low(data: Any) -> None:
    """The same in bfloat16, whose bits are, read as a whole number, above 0 where it is."""
    head = carray(data, 5, np.int64)
    n_rows, n = head[0], head[1]
    grad, hidden = low_matrix(head[2], n_rows, n), low_matrix(head[3], n_rows, n)
    begin, end = _columns(n)
    sums = np.zeros(end - begin, np.float32)
    for i in range(n_rows):
        g, h = grad[i, begin:end], hidden[i, begin:end]
        for k in range(len(sums)):
            own = g[k]
            kept = own if _I16(h[k]) > 0 else _U16(0)
            g[k] = kept
            sums[k] += raised(kept)
    vector(head[4], n)[begin:end] = sums


def relu_back_(grad: Tensor, hidden: Tensor, by_bias: Tensor) -> None:
    """grad (B, n) ← 0 where hidden is 0, by_bias (n,) ← the sum of its rows; both of float32 or of bfloat16."""
    run(_back if grad.dtype == torch.float32 else _back_low, tuple(grad.shape), grad, hidden, by_bias)
