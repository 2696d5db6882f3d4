"""Using a trained coder: standardise, run, a chunk at a time, in the precision of the data."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from softspike.coder import Coder
from softspike.data import ArrayRows, Rows, Standardiser
from softspike.data.error import dtype_error
from softspike.data.tensors import check_tensor
from softspike.inference.growing import GrowingCSR
from softspike.notice import notice
from softspike.solver.threads import stream_on_all_cores

__all__ = ["Inference", "as_array"]

_Out = TypeVar("_Out")
_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)
_BATCH_NUMBERS = 2**20  # entries of codes or data in a batch: memory does not grow with the number of rows


def as_array(data: Any) -> np.ndarray:
    """numpy from a tensor of any device, or from anything numpy understands; numpy has no bfloat16 and no float8."""
    if not isinstance(data, Tensor):
        return np.asarray(data)
    check_tensor(data)
    plain = data.detach().cpu()
    try:
        return (plain.float() if plain.is_floating_point() and plain.dtype not in _NUMPY_FLOATS else plain).numpy()
    except (RuntimeError, TypeError) as error:  # four-bit numbers and the like
        raise dtype_error(data.dtype) from error


class Inference:
    """A coder and its standardiser; float64 data is coded by a float64 copy, made once."""

    def __init__(self, coder: Coder, standardiser: Standardiser):
        self.coder, self.standardiser = coder, standardiser
        self._double: tuple[Coder, Standardiser] | None = None

    def codes(self, rows: Rows) -> sparse.csr_matrix:
        """The deterministic codes, CSR with exact zeros; besides them, no more than a few batches are held."""
        found, without = self._growing(rows), 0
        for z in self._map(rows, lambda coder, x: coder.code(x)):
            found.append(z.cpu().numpy())
            without += _without_number(z)
        _warn_of(without, len(rows))
        return found.finished()

    def codes_and_std(self, rows: Rows) -> tuple[sparse.csr_matrix, np.ndarray]:
        """The codes and the standard deviation of each coefficient, (n, d), from one pass."""
        found = self._growing(rows)
        stds = np.empty((len(rows), found.n_columns), np.float64 if _is_double(rows) else np.float32)
        first = without = 0
        for z, std in self._map(rows, lambda coder, x: coder.code_and_std(x)):
            found.append(z.cpu().numpy())
            without += _without_number(z)
            stds[first : first + len(std)] = std.cpu().numpy()
            first += len(std)
        _warn_of(without, len(rows))
        return found.finished(), stds

    def activation_probability(self, rows: Rows) -> np.ndarray:
        """P(zᵢ ≠ 0 | x), (n, d)."""
        parts = list(self._map(rows, lambda coder, x: coder.activation_probability(x)))
        _warn_of(sum(map(_without_number, parts)), len(rows), "probabilities")
        return np.concatenate([part.cpu().numpy() for part in parts])

    def uses(self, rows: Rows) -> np.ndarray:
        """In how many rows each component is active, (d,)."""
        found = np.zeros(self.coder.generator.n_components, np.int64)
        for z in self._map(rows, lambda coder, x: coder.code(x)):
            found += z.count_nonzero(0).cpu().numpy()
        return found

    @torch.no_grad()
    def decode(self, codes: Any) -> np.ndarray:
        """Data from codes (n, d), sparse or dense, through the generator, in the precision of the codes."""
        double = codes.dtype == np.float64
        coder, standardiser = self._in_double() if double else (self.coder, self.standardiser)
        step = max(_BATCH_NUMBERS // max(coder.generator.n_features, coder.generator.n_components), 1)
        parts = [np.empty((0, coder.generator.n_features), np.float64 if double else np.float32)]
        for first in range(0, codes.shape[0], step):
            part = codes[first : first + step]
            z = torch.from_numpy(np.asarray(part.toarray() if sparse.issparse(part) else part))
            x = coder.generator(z.to(standardiser.mean.device, torch.float64 if double else torch.float32))
            parts.append(standardiser.inverse(x).cpu().numpy())
        return np.concatenate(parts)

    def _growing(self, rows: Rows) -> GrowingCSR:
        dtype = np.dtype(np.float64 if _is_double(rows) else np.float32)
        return GrowingCSR(self.coder.generator.n_components, dtype, len(rows))

    def _map(self, rows: Rows, function: Callable[[Coder, Tensor], _Out]) -> Iterator[_Out]:
        """Batches are read in turn and coded on all cores, in order."""
        coder, standardiser = self._in_double() if _is_double(rows) else (self.coder, self.standardiser)
        device = standardiser.mean.device

        def coded(x: Tensor) -> _Out:
            return function(coder, standardiser(x.to(device)))

        widest = max(coder.generator.n_features, coder.generator.n_components)
        batches = _batches(rows, max(_BATCH_NUMBERS // widest, 1))
        if device.type != "cpu":
            with torch.no_grad():
                yield from map(coded, batches)
        else:
            yield from stream_on_all_cores(coded, batches)

    def _in_double(self) -> tuple[Coder, Standardiser]:
        if self._double is None:
            self._double = copy.deepcopy(self.coder).double(), copy.deepcopy(self.standardiser).double()
        return self._double


def _without_number(z: Tensor) -> int:
    """How many rows hold something that is no number."""
    return int((~z.isfinite()).any(-1).sum())


def _warn_of(without: int, total: int, what: str = "code") -> None:
    if without:
        notice(
            f"{without} of {total} rows have no {what} (NaN): their values are so far beyond those that were learned "
            "from that their squares overflow; give such rows as float64, or scale them"
        )


def _is_double(rows: Rows) -> bool:
    return isinstance(rows, ArrayRows) and rows.array.dtype == np.float64


def _batches(rows: Rows, size: int) -> Iterator[Tensor]:
    for first in range(0, len(rows), size):
        last = min(first + size, len(rows))
        if isinstance(rows, ArrayRows) and _is_double(rows):
            yield torch.from_numpy(np.array(rows.between(first, last), order="C"))  # a copy: it may be read-only
        else:
            yield rows.take(torch.arange(first, last))
