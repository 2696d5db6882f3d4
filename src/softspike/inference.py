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

__all__ = ["Inference", "as_array"]

_Out = TypeVar("_Out")
_CHUNK_NUMBERS = 2**22  # entries of codes or data held at a time: memory does not grow with the number of rows


def as_array(data: Any) -> np.ndarray:
    """numpy from a tensor of any device, or from anything numpy understands; numpy has no bfloat16."""
    if not isinstance(data, Tensor):
        return np.asarray(data)
    plain = data.detach().cpu()
    return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()


class Inference:
    """A coder and its standardiser; float64 data is coded by a float64 copy, made once."""

    def __init__(self, coder: Coder, standardiser: Standardiser):
        self.coder, self.standardiser = coder, standardiser
        self._double: tuple[Coder, Standardiser] | None = None

    def codes(self, rows: Rows) -> sparse.csr_matrix:
        """The deterministic codes, CSR with exact zeros."""
        blocks = [sparse.csr_matrix(z.cpu().numpy()) for z in self._map(rows, lambda coder, x: coder.code(x))]
        return sparse.vstack(blocks, format="csr")

    def codes_and_std(self, rows: Rows) -> tuple[sparse.csr_matrix, np.ndarray]:
        """The codes and the standard deviation of each coefficient, (n, d), from one pass."""
        parts = [(z.cpu().numpy(), std.cpu().numpy()) for z, std in self._map(rows, lambda c, x: c.code_and_std(x))]
        codes, stds = zip(*parts, strict=True)
        return sparse.vstack([sparse.csr_matrix(z) for z in codes], format="csr"), np.concatenate(stds)

    def activation_probability(self, rows: Rows) -> np.ndarray:
        """P(zᵢ ≠ 0 | x), (n, d)."""
        parts = self._map(rows, lambda coder, x: coder.activation_probability(x))
        return np.concatenate([part.cpu().numpy() for part in parts])

    @torch.no_grad()
    def decode(self, codes: Any) -> np.ndarray:
        """Data from codes (n, d), sparse or dense, through the generator, in the precision of the codes."""
        double = codes.dtype == np.float64
        coder, standardiser = self._in_double() if double else (self.coder, self.standardiser)
        step = max(_CHUNK_NUMBERS // max(coder.generator.n_features, coder.generator.n_components), 1)
        parts = []
        for first in range(0, codes.shape[0], step):
            part = codes[first : first + step]
            z = torch.from_numpy(np.asarray(part.toarray() if sparse.issparse(part) else part))
            x = coder.generator(z.to(standardiser.mean.device, torch.float64 if double else torch.float32))
            parts.append(standardiser.inverse(x).cpu().numpy())
        return np.concatenate(parts)

    @torch.no_grad()
    def _map(self, rows: Rows, function: Callable[[Coder, Tensor], _Out]) -> Iterator[_Out]:
        double = isinstance(rows, ArrayRows) and rows.array.dtype == np.float64
        coder, standardiser = self._in_double() if double else (self.coder, self.standardiser)
        step = max(_CHUNK_NUMBERS // max(coder.generator.n_features, coder.generator.n_components), 1)
        for first in range(0, len(rows), step):
            last = min(first + step, len(rows))
            if isinstance(rows, ArrayRows) and double:
                flat = rows.array[first:last].reshape(last - first, rows.n_features)
                x = torch.from_numpy(np.array(flat, order="C"))  # a copy: it may be read-only
            else:
                x = rows.take(torch.arange(first, last))
            yield function(coder, standardiser(x.to(standardiser.mean.device)))

    def _in_double(self) -> tuple[Coder, Standardiser]:
        if self._double is None:
            self._double = copy.deepcopy(self.coder).double(), copy.deepcopy(self.standardiser).double()
        return self._double
