"""Rows of data, wherever they live: only the rows that a step takes are read and converted."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from softspike.data.error import DataError, dtype_error, shape_error
from softspike.data.mapped import advise, check_whole
from softspike.data.tensors import check_tensor

__all__ = ["ArrayRows", "Rows", "ShardRows", "StoredRows", "SubsetRows", "TensorRows"]


@runtime_checkable
class Rows(Protocol):
    """n samples of D features, read a batch at a time."""

    n_features: int

    def __len__(self) -> int: ...

    def take(self, indices: Tensor) -> Tensor:
        """The rows of the given numbers, in the order given: float32 (B, D)."""
        ...


class StoredRows(Rows, Protocol):
    """Rows read from a file, with the shape of each sample where it was an image."""

    image_shape: tuple[int, ...] | None


class ArrayRows:
    """The rows of a numpy array or memmap of any real dtype, (n, D) or (n, *image_shape)."""

    def __init__(self, array: np.ndarray, image_shape: tuple[int, ...] | None = None):
        shape = array.shape
        if len(shape) != 2 and shape[1:] != image_shape:
            raise shape_error(shape)
        if array.dtype.kind not in "fiub":
            raise dtype_error(array.dtype)
        self.array, self.image_shape, self.n_features = np.asarray(array), image_shape, prod(shape[1:])

    def __len__(self) -> int:
        return len(self.array)

    def take(self, indices: Tensor) -> Tensor:
        numbers = indices.cpu().numpy()
        # In ascending order the reads of a memory-mapped file are local; the batch keeps the order asked for.
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        check_whole(self.array)
        advise(self.array, ascending)
        taken = self.array[ascending].reshape(len(numbers), self.n_features)
        batch = np.empty(taken.shape, np.float32)
        with np.errstate(over="ignore"):  # beyond float32 becomes Inf, which check_rows reports with its position
            batch[order] = taken
        return torch.from_numpy(batch)

    def original(self, row: int) -> np.ndarray:
        """One row in its own dtype, before float32."""
        return self.between(row, row + 1)[0]

    def between(self, first: int, end: int) -> np.ndarray:
        """Some rows in their own dtype, (end − first, D); of a mapped file, still there only as long as it is whole."""
        check_whole(self.array)
        return self.array[first:end].reshape(end - first, self.n_features)


class ShardRows:
    """Several arrays of equal width, one after the other."""

    def __init__(self, arrays: Sequence[np.ndarray], image_shape: tuple[int, ...] | None = None):
        if not arrays:
            raise DataError("no shards were given, expected at least one array; give a list of arrays of equal width.")
        self.shards, self.image_shape = [ArrayRows(array, image_shape) for array in arrays], image_shape
        widths = [shard.n_features for shard in self.shards]
        self.n_features = widths[0]
        for number, width in enumerate(widths):
            if width != self.n_features:
                raise DataError(
                    f"shard {number} has {width} features and shard 0 has {self.n_features}, expected equal widths; "
                    "leave the odd shard out."
                )
        self.ends = np.cumsum([len(shard) for shard in self.shards])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def take(self, indices: Tensor) -> Tensor:
        numbers = indices.cpu().numpy()
        _check_range(numbers, len(self))
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        shard_of = np.searchsorted(self.ends, numbers, side="right")
        batch = torch.empty(len(numbers), self.n_features)
        for shard in np.unique(shard_of):
            here = torch.from_numpy(np.flatnonzero(shard_of == shard))
            first = int(self.ends[shard]) - len(self.shards[shard])
            batch[here] = self.shards[shard].take(torch.from_numpy(numbers)[here] - first)
        return batch

    def original(self, row: int) -> np.ndarray:
        """One row in its own dtype, before float32."""
        shard = int(np.searchsorted(self.ends, row, side="right"))
        return self.shards[shard].original(row - int(self.ends[shard]) + len(self.shards[shard]))


class TensorRows:
    """The rows of a tensor, on the device it lives on; `check` is called before they are touched."""

    def __init__(
        self, tensor: Tensor, image_shape: tuple[int, ...] | None = None, check: Callable[[], None] = lambda: None
    ):
        if tensor.ndim != 2:
            raise shape_error(tensor.shape)
        check_tensor(tensor)
        self.tensor, self.image_shape, self.n_features = tensor.detach(), image_shape, tensor.shape[1]
        self.check = check

    def __len__(self) -> int:
        return len(self.tensor)

    def take(self, indices: Tensor) -> Tensor:
        self.check()
        # A GPU is told which rows, not waited for: training would else stand still at every step.
        return self.tensor[indices.to(self.tensor.device, non_blocking=self.tensor.is_cuda)].to(torch.float32)

    def original(self, row: int) -> np.ndarray:
        """One row before float32."""
        self.check()
        return self.tensor[row].to("cpu", torch.float64).numpy()


def _check_range(numbers: np.ndarray, n_rows: int) -> None:
    if len(numbers) and not -n_rows <= numbers.min() <= numbers.max() < n_rows:
        raise IndexError(f"row numbers from {numbers.min()} to {numbers.max()} were asked for, there are {n_rows} rows")


class SubsetRows:
    """Some rows of other rows, in a given order."""

    def __init__(self, rows: Rows, numbers: Tensor):
        self.rows, self.numbers, self.n_features = rows, numbers, rows.n_features
        self.image_shape: tuple[int, ...] | None = getattr(rows, "image_shape", None)

    @classmethod
    def spread(cls, rows: Rows, most: int) -> "SubsetRows":
        """At most so many rows, evenly from the first to the last."""
        n = len(rows)
        return cls(rows, torch.linspace(0, n - 1, min(n, most), dtype=torch.float64).round().long())

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, indices: Tensor) -> Tensor:
        return self.rows.take(self.numbers[indices])
