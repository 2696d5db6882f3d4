"""SGD on a weight whose gradient is gᵀx: each tile of it moves its part of the weight and is never written."""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.bfloat16 import low_matrix
from softspike.kernels.cpu.panels import panels_of, room_for
from softspike.kernels.cpu.threads import loop, matrix, numbers, run, share, vector
from softspike.kernels.cpu.tiles import HIGH, WIDE, low_tile_moved, tile_moved

__all__ = ["descend_"]


@compiled
def _copied(given: Any, into: Any, n_rows: int, n_columns: int) -> None:
    """The upper left corner."""
    for i in range(n_rows):
        for k in range(n_columns):
            into[i, k] = given[i, k]


@loop
def _descend(data: Any) -> None:
    head = carray(data, 10, np.int64)
    n_words, high, wide, low, given = head[0], head[1], head[2], head[3] != 0, vector(head[4], 4)
    rate, decay, kept, nesterov = given[0], given[1], given[2], given[3] != 0
    weight, momentum, copy = matrix(head[7], high, wide), matrix(head[8], high, wide), low_matrix(head[9], high, wide)
    shape = HIGH, WIDE  # of a tile of its own, for what is at an edge
    w, m, c = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.uint16)
    begin, end = share((high + HIGH - 1) // HIGH)
    for p in range(begin, end):
        first, n_rows, slopes = p * HIGH, min(HIGH, high - p * HIGH), head[5] + 4 * p * n_words * HIGH
        for q in range((wide + WIDE - 1) // WIDE):
            left, n_columns, rows = q * WIDE, min(WIDE, wide - q * WIDE), head[6] + 4 * q * n_words * WIDE
            at, stride, whole = first * wide + left, wide, n_rows == HIGH and n_columns == WIDE
            places = head[7] + 4 * at, head[8] + 4 * at, head[9] + 2 * at
            if not whole:
                _copied(weight[first:, left:], w, n_rows, n_columns)
                _copied(momentum[first:, left:], m, n_rows, n_columns)
                places, stride = (w.ctypes.data, m.ctypes.data, c.ctypes.data), WIDE
            if low:
                low_tile_moved(slopes, rows, n_words, *places, stride, rate, decay, kept, nesterov)
            else:
                tile_moved(slopes, rows, n_words, *places, stride, rate, decay, kept, nesterov)
            if not whole:
                _copied(w, weight[first:, left:], n_rows, n_columns)
                _copied(m, momentum[first:, left:], n_rows, n_columns)
                if low:
                    _copied(c, copy[first:, left:], n_rows, n_columns)


def descend_(
    weight: Tensor, momentum: Tensor | None, grad: Tensor, inputs: Tensor, copy: Tensor | None = None, *,
    rate: float, decay: float, kept: float, nesterov: bool, room: Tensor | None = None,
) -> None:  # fmt: skip
    """m ← μm + G,  w ← w − rate·m, or − rate·(G + μm) after Nesterov;  G = gᵀx + decay·w,  copy ← w in bfloat16.

    Weight (n, m) and momentum, None where μ is 0, in float32; g (B, n) and x (B, m) in float32, or in bfloat16 beside
    a copy of the weight; all contiguous. The room is memory to work in that stays, as `panels.room_for` makes it.
    """
    room = room_for(len(grad), *weight.shape) if room is None else room
    n_words, slopes, rows = panels_of(grad, inputs, room)
    momentum = torch.zeros_like(weight) if momentum is None else momentum
    moved = weight, momentum, weight if copy is None else copy  # a copy that is not there is not looked at
    sizes, by = (n_words, *weight.shape, copy is not None), numbers(rate, decay, kept, nesterov)
    run(_descend, sizes, by, slopes, rows, *moved)
