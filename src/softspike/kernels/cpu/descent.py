"""SGD on a weight that has a copy in bfloat16: one pass over weight, momentum, gradient and copy."""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.cpu.bfloat16 import low_matrix, lowered, raised
from softspike.kernels.cpu.threads import loop, matrix, run, share, vector

__all__ = ["descend_"]

_LINE = 1024  # numbers that a thread takes at a time: both threads end within a line of each other


@loop
def _descend(data: Any) -> None:
    head = carray(data, 6, np.int64)
    n, numbers = head[0], vector(head[1], 4)
    weight, momentum = matrix(head[2], 1, n)[0], matrix(head[3], 1, n)[0]
    grad, copy = low_matrix(head[4], 1, n)[0], low_matrix(head[5], 1, n)[0]
    rate, decay, kept, nesterov = numbers[0], numbers[1], numbers[2], numbers[3] != 0
    begin, end = share((n + _LINE - 1) // _LINE)
    begin, end = begin * _LINE, min(end * _LINE, n)
    w, m, g, c = weight[begin:end], momentum[begin:end], grad[begin:end], copy[begin:end]
    for i in range(end - begin):
        slope = raised(g[i]) + decay * w[i]
        pace = kept * m[i] + slope
        moved = w[i] - rate * (kept * pace + slope if nesterov else pace)
        m[i], w[i], c[i] = pace, moved, lowered(moved)


def descend_(
    weight: Tensor, momentum: Tensor, grad: Tensor, copy: Tensor, rate: float, decay: float, kept: float, nesterov: bool
) -> None:
    """m ← μm + g,  w ← w − rate·m, or − rate·(g + μm) after Nesterov;  g = grad + decay·w,  copy ← w in bfloat16.

    weight and momentum float32, grad and copy bfloat16, all of one shape and contiguous.
    """
    numbers = torch.tensor([rate, decay, kept, float(nesterov)], dtype=torch.float32)
    run(_descend, (weight.numel(),), numbers, weight, momentum, grad, copy)
