"""Walking through rows in bounded memory."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softspike.data.error import DataError
from softspike.data.rows import ArrayRows, Rows, TensorRows

__all__ = ["Chunk", "as_rows", "chunks"]

# 32 MiB in float64: statistics of very wide data take fewer rows at a time, so memory stays bounded.
_CHUNK_VALUES = 2**22


class Chunk(NamedTuple):
    start: int  # number of its first row
    x: Tensor  # (rows, D)


def chunks(rows: Rows, size: int = 8192) -> Iterator[Chunk]:
    """All rows in order, at most `size` at a time and fewer where rows are wide."""
    step = max(1, min(size, _CHUNK_VALUES // max(1, rows.n_features)))
    for start in range(0, len(rows), step):
        yield Chunk(start, rows.take(torch.arange(start, min(start + step, len(rows)))))


def as_rows(data: Rows | np.ndarray | Tensor) -> Rows:
    """Rows as they are; an array or tensor (n_samples, n_features) as rows, without a copy."""
    if isinstance(data, Tensor):
        return TensorRows(data)
    if isinstance(data, np.ndarray):
        return ArrayRows(data)
    if isinstance(data, Rows):
        return data
    raise DataError(
        f"the data is a {type(data).__name__}, expected an array, tensor or Rows; convert it with np.asarray."
    )
