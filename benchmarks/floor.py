"""The roofline of a fused training step: what it must compute and move, at rates that are measured on the same GPU."""

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from softspike.methods.published import Study

__all__ = ["Load", "Rates", "floor", "loads_of", "measured_rates"]


class Load(NamedTuple):
    """What a replica does beside the encoder and the dictionary, which all share in shape."""

    n_samples: int
    n_heads: int


class Rates(NamedTuple):
    """Of a large product in tf32 and in bfloat16 (FLOP/s), and of a large copy (bytes/s, read plus written)."""

    flop: float
    flop_bfloat16: float
    bytes: float


def loads_of(families: Sequence[Any]) -> list[Load]:
    """Of the replicas of a fused run."""
    return [Load(int(r.settings.n_samples), family.law.n_heads) for family in families for r in family.readings]


def floor(study: Study, loads: Sequence[Load], rates: Rates) -> dict[str, float]:
    """FLOP and compulsory bytes of a step of these replicas, and the time below which it cannot be.

    Products: every weight forwards, for its gradient and, but for the first layer, for that of its input; atoms for
    the winner, its error's way back, and their own gradient: in tf32. J samples on all atoms, where J > 1: in bfloat16.

    Bytes: weights are read forwards and, but in the first layer, backwards, and rewritten with their momentum; atoms
    are read twice and rewritten, and their bfloat16 copy is written and read. Inputs are read once. Activations of
    every layer, heads and codes, errors, and the loss's gradients at layers and heads are written once and read once.
    """
    b, d, features = study.batch_size, study.n_components, study.n_features
    atoms, first = features * d, features * study.widths[0]
    products = scored = weight_bytes = activation_bytes = 0
    for load in loads:
        weights = sum(x * y for x, y in pairwise([features, *study.widths, load.n_heads * d]))
        products += 2 * b * (3 * weights - first + 3 * atoms)
        scored += 2 * b * load.n_samples * atoms if load.n_samples > 1 else 0
        weight_bytes += 4 * (6 * weights - first + 5 * atoms)
        kept = 2 * (sum(study.widths) + load.n_heads * d) + d + features  # numbers for each input
        activation_bytes += 4 * b * (features + 2 * kept)
    seconds = products / rates.flop + scored / rates.flop_bfloat16
    moving = (weight_bytes + activation_bytes) / rates.bytes
    return {
        "GFLOP": (products + scored) / 1e9, "GFLOP_scored": scored / 1e9, "MB": (weight_bytes + activation_bytes) / 1e6,
        "MB_activations": activation_bytes / 1e6, "arithmetic_us": seconds * 1e6, "bytes_us": moving * 1e6,
        "floor_us": max(seconds, moving) * 1e6,
    }  # fmt: skip


def measured_rates() -> Rates:
    a = torch.randn(8192, 8192, device="cuda")
    low = a.bfloat16()
    torch.backends.cuda.matmul.allow_tf32 = True
    flop, flop_low = 2 * 8192**3 / _seconds(lambda: a @ a), 2 * 8192**3 / _seconds(lambda: low @ low)
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.randn(2**28, device="cuda")
    target = torch.empty_like(source)
    return Rates(flop, flop_low, 2 * 4 * 2**28 / _seconds(lambda: target.copy_(source)))


def _seconds(work: Callable[[], Any], repeats: int = 10) -> float:
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
