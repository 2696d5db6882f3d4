"""A sparse matrix that grows by rows and is not held twice in the end."""

import numpy as np
from scipy import sparse

__all__ = ["GrowingCSR"]

_SPARE = 1.25  # how much more room is made than the rows so far lead to expect


class GrowingCSR:
    """CSR (n, d) from dense blocks (B, d), in order.

    Room is made for all rows from what those so far needed; pages that no value is written to take no memory, and what
    is left over is given back. Where later rows need more, what there is moves to more room, both being held meanwhile.
    Stacking blocks at the end would hold all of them a second time in any case.
    """

    def __init__(self, n_columns: int, dtype: np.dtype, n_rows: int):
        self.n_columns, self._n_rows, self._n_values = n_columns, 0, 0
        self._values, self._columns = np.empty(0, dtype), np.empty(0, np.int32)
        self._ends = np.zeros(n_rows + 1, np.int64)

    def append(self, block: np.ndarray) -> None:
        rows, columns = block.nonzero()
        begin, end = self._n_values, self._n_values + len(rows)
        last = self._n_rows + len(block)
        if end > len(self._values):
            self._make_room(int(_SPARE * end * max(len(self._ends) - 1, last) / max(last, 1)) + 1)
        self._values[begin:end], self._columns[begin:end] = block[rows, columns], columns
        counts = np.bincount(rows, minlength=len(block))
        self._ends[self._n_rows + 1 : last + 1] = begin + np.cumsum(counts)
        self._n_rows, self._n_values = last, end

    def _make_room(self, n_values: int) -> None:
        values, columns = np.empty(n_values, self._values.dtype), np.empty(n_values, np.int32)
        values[: self._n_values], columns[: self._n_values] = (
            part[: self._n_values] for part in (self._values, self._columns)
        )
        self._values, self._columns = values, columns

    def finished(self) -> sparse.csr_matrix:
        """The matrix; nothing more can be added."""
        self._values.resize(self._n_values, refcheck=False)
        self._columns.resize(self._n_values, refcheck=False)
        parts = self._values, self._columns, self._ends[: self._n_rows + 1]
        found = sparse.csr_matrix((self._n_rows, self.n_columns), dtype=self._values.dtype)
        small = self._n_values < 2**31
        found.data, found.indices = parts[0], parts[1] if small else parts[1].astype(np.int64)
        found.indptr = parts[2].astype(np.int32) if small else parts[2]
        found.has_sorted_indices = found.has_canonical_format = True
        return found
