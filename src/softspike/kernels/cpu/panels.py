"""Matrices laid out for products over their rows: (panels, B, width), so that a tile reads memory from end to end.

In bfloat16 two rows share a word, which is how processors that multiply it take it.
"""

from typing import Any

import numpy as np
import torch
from numba import carray
from torch import Tensor

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.bfloat16 import low_matrix
from softspike.kernels.cpu.threads import loop, matrix, pointer, run, share, vector
from softspike.kernels.cpu.tiles import HIGH, WIDE

__all__ = ["panels_of", "room_for"]

_U32 = np.uint32


@compiled
def _laid(given: Any, width: int, out: Any) -> None:
    """The panels of this thread; columns that are not there are 0. A row at a time: columns lie in few lines of a
    cache, whose rows are often apart by a power of two."""
    n = len(given)
    begin, end = share(len(out) // (n * width))
    for b in range(n):
        for p in range(begin, end):
            line, row = out[(p * n + b) * width : (p * n + b + 1) * width], given[b, p * width :]
            if len(row) >= width:  # the same, of a length that the compiler knows
                for k in range(width):
                    line[k] = row[k]
            else:
                line[:] = np.float32(0)
                line[: len(row)] = row


@compiled
def _laid_low(given: Any, width: int, out: Any) -> None:
    """The same, two rows in a word; a row that is not there is 0."""
    n = len(given)
    n_pairs = (n + 1) // 2
    begin, end = share(len(out) // (n_pairs * width))
    for b in range(n_pairs):
        kept = _U32(0xFFFF0000 if 2 * b + 1 < n else 0)
        for p in range(begin, end):
            line = out[(p * n_pairs + b) * width : (p * n_pairs + b + 1) * width]
            first, second = given[2 * b, p * width :], given[min(2 * b + 1, n - 1), p * width :]
            if len(first) >= width:
                for k in range(width):
                    line[k] = _U32(first[k]) | (_U32(_U32(second[k]) << _U32(16)) & kept)
            else:
                line[:] = _U32(0)
                for k in range(len(first)):
                    line[k] = _U32(first[k]) | (_U32(_U32(second[k]) << _U32(16)) & kept)


@loop
def _pack(data: Any) -> None:
    head = carray(data, 8, np.int64)
    n_rows, n, m, low = head[0], head[1], head[2], head[3] != 0
    n_words = (n_rows + 1) // 2 if low else n_rows
    n_slopes, n_inputs = (n + HIGH - 1) // HIGH * HIGH * n_words, (m + WIDE - 1) // WIDE * WIDE * n_words
    if low:
        _laid_low(low_matrix(head[4], n_rows, n), HIGH, carray(pointer(head[6]), (n_slopes,), _U32))
        _laid_low(low_matrix(head[5], n_rows, m), WIDE, carray(pointer(head[7]), (n_inputs,), _U32))
    else:
        _laid(matrix(head[4], n_rows, n), HIGH, vector(head[6], n_slopes))
        _laid(matrix(head[5], n_rows, m), WIDE, vector(head[7], n_inputs))


def panels_of(grad: Tensor, inputs: Tensor, room: Tensor) -> tuple[int, Tensor, Tensor]:
    """How many words deep they are, those of g (B, n) and those of x (B, m); both of float32 or both of bfloat16.

    They lie in a room, of `room_for` or larger, that stays: new pages of memory would take longer to come than to fill.
    """
    low, (n, m) = grad.dtype == torch.bfloat16, (grad.shape[1], inputs.shape[1])
    n_words = (len(grad) + 1) // 2 if low else len(grad)
    begin, end = (n_words * -(-size // width) * width for size, width in ((n, HIGH), (m, WIDE)))
    slopes, rows = room[:begin], room[begin : begin + end]
    run(_pack, (len(grad), n, m, low), grad, inputs, slopes, rows)
    return n_words, slopes, rows


def room_for(n_rows: int, n: int, m: int) -> Tensor:
    """Enough for panels of (n_rows, n) and (n_rows, m)."""
    return torch.empty(n_rows * (n + HIGH + m + WIDE))
