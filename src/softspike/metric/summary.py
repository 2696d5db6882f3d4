"""The figures a run is judged by, each beside what simpler codes of the same size reach."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, RunningMoments
from softspike.data.chunks import chunks
from softspike.generator import LinearGenerator
from softspike.metric.matched import pursuable
from softspike.metric.reconstruction import explained_share, explained_variance, pca_explained_variance
from softspike.solver import omp_at_mean_count

__all__ = ["Baselines", "Summary", "baselines", "summarise"]


class Summary(NamedTuple):
    """A coder on a data set, by its deterministic codes."""

    n_samples: int
    explained_variance: float  # about the mean of the data
    active: float  # mean non-zero components per sample
    active_share: float  # the same over the number of components
    dead: int  # components zero on all n_samples
    n_components: int
    loss: float  # ½‖x − x̂‖² + 20‖z‖₁, the paper's validation loss
    loss_of_zero: float  # the same for z = 0: what coding nothing costs
    error: float | None = None  # mean over samples and features of (x − x̂)²


class Baselines(NamedTuple):
    """Explained variance of rivals at the same mean count, on at most `n_samples` of the data."""

    n_samples: int
    pca: float  # as many principal components as the mean count, rounded
    omp: float | None  # matching pursuit on the same dictionary, one global tolerance, the same mean count
    own: float | None = None  # the coder itself, on these samples


@torch.no_grad()
def summarise(coder: Coder, rows: Rows, device: torch.device | str = "cpu") -> Summary:
    """One pass over the rows in chunks; memory does not grow with their number."""
    n, d = len(rows), coder.generator.n_components
    moments, residual, active, size = RunningMoments(rows.n_features), 0.0, 0, 0.0
    fired = torch.zeros(d, dtype=torch.bool, device=device)
    for chunk in chunks(rows, 4096):
        x = chunk.x.to(device)
        z = coder.code(x)
        moments.update(x)
        residual += float((x - coder.generator(z)).double().square().sum())
        active, size = active + int((z != 0).sum()), size + float(z.abs().double().sum())
        fired |= (z != 0).any(0)
    variance = float(moments.squares.sum())
    energy = variance + n * float(moments.mean.square().sum())
    return Summary(
        n, explained_share(residual, variance), active / n, active / n / d, int((~fired).sum()), d,
        error=residual / n / rows.n_features, loss=(0.5 * residual + 20 * size) / n, loss_of_zero=0.5 * energy / n,
    )  # fmt: skip


@torch.no_grad()
def baselines(coder: Coder, x: Tensor, mean_active: float) -> Baselines:
    """PCA and OMP at the mean count `mean_active`, on the first rows of x where pursuing all would take gigabytes.

    A deep generator has no atoms to pursue.
    """
    if not isinstance(coder.generator, LinearGenerator):
        return Baselines(len(x), pca_explained_variance(x, max(round(mean_active), 1)), None)
    atoms = coder.generator.atoms.detach()
    x = pursuable(x, atoms, mean_active)
    codes = omp_at_mean_count(x, atoms, mean_active)
    own = explained_variance(x, coder.generator(coder.code(x)))
    pca = pca_explained_variance(x, max(round(mean_active), 1))
    return Baselines(len(x), pca, explained_variance(x, codes @ atoms.T), own)
