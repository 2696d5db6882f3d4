"""What each component does: how often, how strongly and with whom it fires. From codes as scipy CSR (n, d)."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

__all__ = ["Histograms", "Partners", "firing_rate", "mean_size", "partners", "strongest_inputs", "value_histograms"]

# Pairs of components whose shared firings are held at a time: 2²⁴ counts are 64 MiB.
_PAIRS = 2**24


class Histograms(NamedTuple):
    """The values of each component where it is active, in bins of equal width from −reach to reach."""

    reach: np.ndarray  # (d,) the largest |z|, 0 for a component that never fires
    counts: np.ndarray  # (d, n_bins)


class Partners(NamedTuple):
    """The k components that fire most beyond chance with each one; −1 and 0 where there are fewer."""

    atom: np.ndarray  # (d, k)
    share: np.ndarray  # (d, k) P(partner on | this one on)


def firing_rate(codes: sparse.csr_matrix) -> np.ndarray:
    """The share of inputs on which each component is non-zero, (d,)."""
    return np.bincount(codes.indices, minlength=codes.shape[1]) / max(codes.shape[0], 1)


def mean_size(codes: sparse.csr_matrix) -> np.ndarray:
    """mean |z| over the inputs on which a component is active, (d,); 0 where it never is."""
    fired = np.bincount(codes.indices, minlength=codes.shape[1])
    total = np.bincount(codes.indices, weights=np.abs(codes.data, dtype=np.float64), minlength=codes.shape[1])
    return total / np.maximum(fired, 1)


def value_histograms(codes: sparse.csr_matrix, n_bins: int = 31) -> Histograms:
    """Counts of the active values; an odd number of bins puts zero in the middle of one."""
    d = codes.shape[1]
    reach = np.zeros(d)
    np.maximum.at(reach, codes.indices, np.abs(codes.data))
    place = (codes.data / np.maximum(reach[codes.indices], 1e-300) + 1) / 2 * n_bins
    bins = np.clip(place.astype(np.int64), 0, n_bins - 1)
    counts = np.bincount(codes.indices * np.int64(n_bins) + bins, minlength=d * n_bins)
    return Histograms(reach, counts.reshape(d, n_bins))


def partners(codes: sparse.csr_matrix, k: int) -> Partners:
    """The k largest P(j on | i on) − P(j on) above 0 for each i, in falling order."""
    n, d = codes.shape
    k = min(k, max(d - 1, 0))
    on = sparse.csc_matrix((np.ones(codes.nnz, np.float32), codes.indices, codes.indptr), shape=(d, n)).tocsr()
    rate = firing_rate(codes)
    index, share = np.full((d, k), -1), np.zeros((d, k))
    for first in range(0, d, max(_PAIRS // d, 1)):
        rows = np.arange(first, min(first + max(_PAIRS // d, 1), d))
        given = (on[rows] @ on.T).toarray() / np.maximum(n * rate[rows, None], 1).astype(np.float32)
        excess = given - rate.astype(np.float32)
        excess[np.arange(len(rows)), rows] = -np.inf
        best = _largest(excess, k)
        found = np.take_along_axis(excess, best, 1) > 0
        index[rows] = np.where(found, best, -1)
        share[rows] = np.where(found, np.take_along_axis(given, best, 1), 0)
    return Partners(index, share)


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Column numbers of the k largest values of each row, in falling order; whole rows are not sorted for it."""
    if k < values.shape[1]:
        among = np.argpartition(-values, k, axis=1)[:, :k]
    else:
        among = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    order = np.argsort(-np.take_along_axis(values, among, 1), axis=1, kind="stable")
    return np.take_along_axis(among, order, 1)


def strongest_inputs(codes: sparse.csr_matrix, k: int) -> np.ndarray:
    """(d, k) numbers of the inputs with the largest |z| of each component, falling; −1 where fewer are active."""
    columns = codes.tocsc()
    found = np.full((codes.shape[1], k), -1)
    for i in range(codes.shape[1]):
        here = slice(columns.indptr[i], columns.indptr[i + 1])
        order = np.argsort(-np.abs(columns.data[here]), kind="stable")[:k]
        found[i, : len(order)] = columns.indices[here][order]
    return found
