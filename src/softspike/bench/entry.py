"""One method in the comparison, and what was measured of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from softspike.bench.problem import Problem
from softspike.metric import explained_share
from softspike.solver import lasso_gap

__all__ = ["GAP", "ONE_MORE", "Codes", "Entry", "Quality", "quality_of"]

Codes = Any  # (n, d): an array, a tensor or a scipy sparse matrix
ONE_MORE = "OMP, one atom more"
GAP = 1e-3  # of the lasso's objective over ½‖x‖², at which its solvers are compared


@dataclass(frozen=True)
class Entry:
    """A method: how it codes the first n signals, and how its codes are read."""

    family: str  # encoder, lasso or omp; ratios are taken within one
    package: str
    name: str
    code: Callable[[int], Codes]
    note: str = ""
    decode: Callable[[Tensor], Tensor] | None = None  # None: on the shared dictionary
    seconds: list[float] = field(default_factory=list)  # per 1,000 signals, one for each round
    cpu_seconds: list[float] = field(default_factory=list)  # the same, of all threads together


class Quality(NamedTuple):
    explained: float
    active: float
    gap: float | None  # of the lasso's objective over ½‖x‖²: 99 % of signals are below


def quality_of(entry: Entry, problem: Problem, codes: Codes) -> Quality:
    """Explained variance about the mean, non-zeros on average, and the gap, all from the codes themselves."""
    z = torch.from_numpy(np.asarray(_dense(codes), dtype=np.float32))
    x = problem.x[: len(z)]
    image = z @ problem.atoms.T if entry.decode is None else entry.decode(z)
    left = float((x - image).double().square().sum())
    explained = explained_share(left, float((x - x.mean(0)).double().square().sum()))
    gap = None
    if entry.family == "lasso":
        # In float64, a part at a time: a gap of 1e-6 is below what float32 can tell.
        parts = [_relative_gap(problem, a, b) for a, b in zip(x.split(1000), z.split(1000), strict=True)]
        gap = float(torch.cat(parts).quantile(0.99))
    return Quality(explained, float((z != 0).sum(-1).double().mean()), gap)


def _dense(codes: Codes) -> Any:
    return codes.toarray() if sparse.issparse(codes) else codes


def _relative_gap(problem: Problem, x: Tensor, z: Tensor) -> Tensor:
    gap = lasso_gap(x.double(), problem.atoms.double(), z.double(), problem.penalty)
    return gap.clamp_min(0) / (0.5 * x.double().square().sum(-1)).clamp_min(1e-30)
