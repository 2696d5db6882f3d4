"""Multi-information Σᵢ H(zᵢ) − H(z) in bits, by the plug-in entropies of binned codes."""

from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

__all__ = ["MultiInformation", "bin_codes", "joint_entropy", "marginal_entropy", "multi_information", "published_edges"]

_CHUNK_NUMBERS = 2**22  # codes binned or hashed at a time


class MultiInformation(NamedTuple):
    """Entropies in bits. Beyond a few components every row is unique, and then `joint` is log₂N whatever the codes."""

    marginal: float  # Σᵢ H(zᵢ)
    joint: float  # H(z)
    shuffled: float  # H of the codes with every column permuted by itself: independent, same marginals

    @property
    def published(self) -> float:
        """Σᵢ H(zᵢ) − H(z): as in the paper. Independent codes do not score 0, dense ones score more."""
        return self.marginal - self.joint

    @property
    def corrected(self) -> float:
        """The same less what it gives for the permuted codes: 0 for independent codes, up to chance."""
        return self.shuffled - self.joint


def multi_information(codes: Any, edges: np.ndarray | None = None, seed: int = 0) -> MultiInformation:
    """Of codes (N, d): a tensor, an array or a scipy CSR matrix. Holds one byte per code."""
    bins = bin_codes(codes, published_edges() if edges is None else edges)
    marginal, joint = marginal_entropy(bins), joint_entropy(bins)
    np.random.default_rng(seed).permuted(bins, axis=1, out=bins)
    return MultiInformation(marginal, joint, shuffled=joint_entropy(bins))


def published_edges(n_edges: int = 20) -> np.ndarray:
    """linspace(−2, 2, n) and ±1e-50, which give exact zeros a bin of their own; 30 for the deep runs."""
    return np.sort(np.append(np.linspace(-2, 2, n_edges), [-1e-50, 1e-50]))


def bin_codes(codes: Any, edges: np.ndarray) -> np.ndarray:
    """The number of each code's bin, edges[i−1] ≤ z < edges[i], as bytes (d, N): one row per component."""
    if len(edges) > 255:
        raise ValueError(f"{len(edges)} edges were given, expected at most 255: bins are kept as bytes")
    bins = np.empty(codes.shape[::-1], np.uint8)
    for here in _slices(bins):
        part = codes[here]
        part = part.toarray() if sparse.issparse(part) else part
        tensor = part.detach() if isinstance(part, Tensor) else torch.from_numpy(np.ascontiguousarray(part))
        limits = _edges_as(edges, tensor.dtype).to(tensor.device)
        numbers = torch.bucketize(tensor, limits, out_int32=True, right=True)
        bins[:, here] = numbers.to(torch.uint8).T.cpu().numpy()
    return bins


def _slices(bins: np.ndarray) -> Iterator[slice]:
    """Runs of samples that are binned or hashed at a time."""
    d, n = bins.shape
    step = max(_CHUNK_NUMBERS // d, 1)
    return (slice(first, min(first + step, n)) for first in range(0, n, step))


def _edges_as(edges: np.ndarray, dtype: torch.dtype) -> Tensor:
    """The smallest float ≥ each edge: z ≥ edge is then the same question in float32, where 1e-50 is no number."""
    if dtype == torch.float64:
        return torch.from_numpy(edges)
    rounded = edges.astype(np.float32)
    below = rounded.astype(np.float64) < edges
    return torch.from_numpy(np.where(below, np.nextafter(rounded, np.float32(np.inf)), rounded)).to(dtype)


def marginal_entropy(bins: np.ndarray) -> float:
    """Σᵢ H(zᵢ), H = −Σ p·log₂p over the bins of a component."""
    return sum(_entropy(np.bincount(component)) for component in bins)


def joint_entropy(bins: np.ndarray) -> float:
    """H(z): the entropy of how often each whole code occurs; at most log₂N."""
    counts: Counter[bytes] = Counter()
    for here in _slices(bins):
        counts.update(blake2b(code, digest_size=16).digest() for code in np.ascontiguousarray(bins[:, here].T))
    return _entropy(np.fromiter(counts.values(), np.int64, len(counts)))


def _entropy(counts: np.ndarray) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(-(p * np.log2(p)).sum())
