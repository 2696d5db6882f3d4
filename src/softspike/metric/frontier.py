"""Rate against distortion: what a trained coder explains when it may use fewer or more components."""

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.generator import atoms_of
from softspike.metric.reconstruction import active_count, explained_share, explained_variance, pca_residuals
from softspike.solver import omp_residuals

__all__ = ["Frontier", "rate_distortion"]


class Frontier(NamedTuple):
    """Explained variance at each mean count; all on the same rows."""

    active: list[float]  # mean count of the coder's own codes
    explained: list[float]
    pca: list[float]  # as many principal components
    omp: list[float]  # matching pursuit on the same dictionary, one global tolerance, the same mean count
    n_samples: int


@torch.no_grad()
def rate_distortion(coder: Coder, x: Tensor, counts: Sequence[float], fit: Tensor) -> Frontier:
    """Set a copy of the coder to each mean count on x (B, D) and measure it beside its rivals.

    Principal components are those of `fit`, more rows of the same kind: those of few rows would flatter themselves.
    The dictionary and the encoder stay as trained, so these are points of one model, not a model per point. A coder
    whose count is fixed by construction gives a single point.
    """
    points: dict[float, float] = {}
    for count in counts:
        moved = copy.deepcopy(coder)
        moved.set_count(x, count)
        z = moved.code(x)
        points[round(active_count(z), 3)] = explained_variance(x, moved.generator(z))
    active = sorted(points)
    left = omp_residuals(x, atoms_of(coder.generator), active).sum(-1)
    left_by_pca = pca_residuals(x, [max(round(count), 1) for count in active], fit)
    variance = float((x.double() - x.double().mean(0)).square().sum())
    omp, pca = ([explained_share(float(value), variance) for value in side] for side in (left, left_by_pca))
    return Frontier(active, [points[count] for count in active], pca, omp, len(x))
