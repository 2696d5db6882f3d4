"""Data from sparse codes: ZA by gathering the few atoms of each row, or densely, whichever is found to be faster."""

import time
from collections.abc import Callable
from math import log2

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import embedding_bag

__all__ = ["WAYS", "decode_csr", "dense", "gathered", "plain"]

_SMALL = 2**22  # products; with fewer the plain way ends before the others could be timed
_CHUNK_NUMBERS = 2**20  # of codes, or of data, held at a time besides the result
_TRIED = 256  # rows that the ways are timed on
Way = Callable[[sparse.csr_matrix, np.ndarray], np.ndarray]


def plain(codes: sparse.csr_matrix, atoms: np.ndarray) -> np.ndarray:
    """scipy's product: the reference."""
    return np.asarray(codes @ atoms)


def gathered(codes: sparse.csr_matrix, atoms: np.ndarray) -> np.ndarray:
    """Σ zᵢaᵢ over the non-zeros of each row, vectorised and on all cores."""
    index = codes.indices.dtype
    places = torch.from_numpy(codes.indices), torch.from_numpy(codes.indptr[:-1].astype(index, copy=False))
    weights = torch.from_numpy(codes.data)
    return embedding_bag(places[0], torch.from_numpy(atoms), places[1], mode="sum", per_sample_weights=weights).numpy()


def dense(codes: sparse.csr_matrix, atoms: np.ndarray) -> np.ndarray:
    """Zeros and all, as one matrix product."""
    return (torch.from_numpy(codes.toarray()) @ torch.from_numpy(atoms)).numpy()


WAYS: dict[str, Way] = {"plain": plain, "gathered": gathered, "dense": dense}
_known: dict[tuple[object, ...], str] = {}  # what was fastest for matrices of a kind, in this process


@torch.no_grad()
def decode_csr(codes: sparse.csr_matrix, atoms: np.ndarray) -> np.ndarray:
    """Codes (n, d) times atoms (d, D), both float32 or both float64; the ways agree to rounding."""
    n, n_features = codes.shape[0], atoms.shape[1]
    if not n or codes.nnz * n_features < _SMALL:
        return plain(codes, atoms)
    name = _fastest(codes, atoms)
    widest = max(n_features, codes.shape[1] if name == "dense" else codes.nnz // n)
    step, way = max(_CHUNK_NUMBERS // widest, 1), WAYS[name]
    if n <= step:
        return way(codes, atoms)
    out = np.empty((n, n_features), atoms.dtype)
    for first in range(0, n, step):
        out[first : first + step] = way(codes[first : first + step], atoms)
    return out


def _fastest(codes: sparse.csr_matrix, atoms: np.ndarray) -> str:
    """By measurement, once for each shape, precision and activity (to a factor of 2)."""
    activity = round(log2(max(codes.nnz / codes.shape[0], 1)))
    key = atoms.shape, atoms.dtype, activity, torch.get_num_threads()
    if key not in _known:
        n = codes.shape[0]
        some = codes[np.linspace(0, n - 1, min(n, _TRIED)).astype(int)]  # from all over: the first may be unlike others
        _known[key] = min(WAYS, key=lambda name: _seconds(WAYS[name], some, atoms))
    return _known[key]


def _seconds(way: Way, codes: sparse.csr_matrix, atoms: np.ndarray) -> float:
    """The best of three, after one that loads what is needed."""
    way(codes, atoms)
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        way(codes, atoms)
        taken.append(time.perf_counter() - begun)
    return min(taken)
