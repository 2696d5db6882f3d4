"""What the page draws from: arrays of one run, small enough to embed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse

from softspike.data import Rows
from softspike.metric import strongest_inputs
from softspike.report.findings import Findings
from softspike.report.pixels import Drawn, to_bytes, to_signed_bytes

__all__ = ["POOL_BYTES", "Dictionary", "dictionary_arrays", "finding_arrays", "most_values"]

# Raw bytes of embedded inputs with their reconstructions, and of atoms; base64 makes them a third larger.
POOL_BYTES, _ATOM_BYTES = 6_000_000, 4_000_000
_SHOWN_INPUTS, _FEWEST, _MOST = 48, 3, 8  # inputs to explore; strongest inputs per atom


class Dictionary(NamedTuple):
    """A dictionary in units of the data."""

    components: np.ndarray  # (d, D) atoms in rows
    mean: np.ndarray  # (D,) what the data is centred by


def most_values(n_components: int, n_runs: int = 1) -> int:
    """How many values each picture may have, so that all of them fit."""
    pool = POOL_BYTES // n_runs // (2 * (_FEWEST * n_components + _SHOWN_INPUTS))
    return max(min(_ATOM_BYTES // n_runs // n_components, int(1.1 * pool), 64 * 64 * 3), 16)


def dictionary_arrays(dictionary: Dictionary, drawn: Drawn) -> dict[str, np.ndarray]:
    """What is there without any data."""
    atoms, peak = to_signed_bytes(drawn.values(dictionary.components))
    norm = np.linalg.norm(dictionary.components, axis=1).astype(np.float32)
    return {"atoms": atoms, "peak": peak, "norm": norm, "mean": drawn.values(dictionary.mean[None])[0]}


def finding_arrays(
    drawn: Drawn, findings: Findings, rows: Rows, rebuilt: Callable[[sparse.csr_matrix], np.ndarray], n_runs: int = 1
) -> dict[str, np.ndarray]:
    """Usage, partners, neighbours, values, and inputs with their codes.

    Inputs come with their reconstruction as pixels: the codes of thousands of inputs would weigh more. Those of the
    first few, which can be taken apart atom by atom, are there as well.
    """
    strongest = _that_fit(strongest_inputs(findings.codes, _MOST), POOL_BYTES // n_runs // (2 * drawn.n_values))
    shown = _spread(len(rows), _SHOWN_INPUTS)
    pool = np.concatenate([shown, np.setdiff1d(strongest[strongest >= 0], shown)])
    place = np.full(len(rows) + 1, -1)  # the last one answers for −1
    place[pool] = np.arange(len(pool))
    found = findings._asdict()
    per_atom = {name: found[name].astype(np.float32) for name in ("rate", "probability", "size")}
    return {
        **per_atom,
        "likeness": findings.likeness.astype(np.uint32),
        "reach": findings.histograms.reach.astype(np.float32),
        "histogram": np.minimum(findings.histograms.counts, 65535).astype(np.uint16),
        "partner": findings.partners.atom.astype(np.int32),
        "partnerShare": findings.partners.share.astype(np.float32),
        "near": findings.neighbours.atom.numpy().astype(np.int32),
        "nearCosine": findings.neighbours.cosine.numpy().astype(np.float32),
        "strongest": place[strongest].astype(np.int32),
        "strongestValue": _entries(findings.codes, strongest).astype(np.float32),
        **_inputs(pool, drawn, findings, rows, rebuilt),
        **_codes(findings.codes[shown]),
    }  # fmt: skip


def _that_fit(strongest: np.ndarray, most: int) -> np.ndarray:
    """As many strongest inputs per atom as make no more than `most` different ones, and a few in any case."""
    counts = range(strongest.shape[1], _FEWEST, -1)
    k = next((k for k in counts if len(np.unique(strongest[:, :k])) <= most), _FEWEST)
    return strongest[:, :k]


def _inputs(
    pool: np.ndarray, drawn: Drawn, findings: Findings, rows: Rows, rebuilt: Callable[[sparse.csr_matrix], np.ndarray]
) -> dict[str, np.ndarray]:
    """Originals and reconstructions as bytes on one scale for both, a chunk at a time."""
    n, m = len(pool), drawn.n_values
    pixels, bounds = np.empty((n, 2, m), np.uint8), np.empty((n, 2), np.float32)
    for first in range(0, n, 1024):
        part = pool[first : first + 1024]
        x = rows.take(torch.from_numpy(part)).cpu().numpy()
        original, guess = drawn.values(x), drawn.values(rebuilt(findings.codes[part]))
        low, high = np.minimum(original, guess).min(1), np.maximum(original, guess).max(1)
        here = slice(first, first + len(part))
        pixels[here, 0], pixels[here, 1] = to_bytes(original, low, high), to_bytes(guess, low, high)
        bounds[here, 0], bounds[here, 1] = low, high
    return {
        "inputs": pixels, "bounds": bounds, "row": pool.astype(np.uint32),
        "unexplained": findings.unexplained[pool].astype(np.float32),
    }  # fmt: skip


def _codes(codes: sparse.csr_matrix) -> dict[str, np.ndarray]:
    return {
        "codeStart": codes.indptr.astype(np.uint32), "codeAtom": codes.indices.astype(np.uint32),
        "codeValue": codes.data.astype(np.float32),
    }  # fmt: skip


def _entries(codes: sparse.csr_matrix, inputs: np.ndarray) -> np.ndarray:
    """codes[inputs[i, j], i], 0 where inputs is −1."""
    d, k = inputs.shape
    values = np.asarray(codes[np.maximum(inputs, 0).ravel(), np.repeat(np.arange(d), k)]).reshape(d, k)
    return np.where(inputs >= 0, values, 0)


def _spread(n: int, count: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.int64))
