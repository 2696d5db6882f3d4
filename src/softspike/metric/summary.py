"""The figures a run is judged by, each beside what simpler codes of the same size reach."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, RunningMoments
from softspike.data.chunks import chunks
from softspike.generator import LinearGenerator
from softspike.metric.reconstruction import explained_share, explained_variance, pca_explained_variance
from softspike.solver import omp_at_mean_count, rows_held

__all__ = ["Baselines", "Summary", "Tally", "baselines", "summarise"]

_PURSUIT_NUMBERS = 2**26  # entries of the bases and triangles of pursuits: seconds, not minutes


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


class Tally:
    """The sums behind a summary, added up a batch at a time."""

    def __init__(self, n_features: int, n_components: int, device: torch.device | str = "cpu"):
        self._moments, self._fired = (
            RunningMoments(n_features),
            torch.zeros(n_components, dtype=torch.bool, device=device),
        )
        self._n, self._active, self._residual, self._size = 0, 0, 0.0, 0.0

    def add(self, x: Tensor, z: Tensor, rebuilt: Tensor) -> None:
        """Rows x (B, D), their codes z (B, d) and what those make of them (B, D)."""
        self._moments.update(x)
        self._n += len(x)
        self._residual += float((x - rebuilt).double().square().sum())
        self._active += int((z != 0).sum())
        self._size += float(z.abs().double().sum())
        self._fired |= (z != 0).any(0)

    def summary(self) -> Summary:
        n, d, variance = self._n, len(self._fired), float(self._moments.squares.sum())
        energy = variance + n * float(self._moments.mean.square().sum())
        return Summary(
            n, explained_share(self._residual, variance), self._active / n, self._active / n / d,
            int((~self._fired).sum()), d, error=self._residual / n / len(self._moments.mean),
            loss=(0.5 * self._residual + 20 * self._size) / n, loss_of_zero=0.5 * energy / n,
        )  # fmt: skip


@torch.no_grad()
def summarise(coder: Coder, rows: Rows, device: torch.device | str = "cpu") -> Summary:
    """One pass over the rows in chunks; memory does not grow with their number."""
    tally = Tally(rows.n_features, coder.generator.n_components, device)
    for chunk in chunks(rows, 4096):
        x = chunk.x.to(device)
        z = coder.code(x)
        tally.add(x, z, coder.generator(z))
    return tally.summary()


@torch.no_grad()
def baselines(coder: Coder, x: Tensor, mean_active: float) -> Baselines:
    """PCA and OMP at the mean count `mean_active`, on the first rows of x where pursuing all would take minutes.

    A deep generator has no atoms to pursue.
    """
    if not isinstance(coder.generator, LinearGenerator):
        return Baselines(len(x), pca_explained_variance(x, max(round(mean_active), 1)), None)
    atoms = coder.generator.atoms.detach()
    x = x[: max(rows_held(_PURSUIT_NUMBERS, atoms.shape, mean_active), 1)]
    codes = omp_at_mean_count(x, atoms, mean_active)
    own = explained_variance(x, coder.generator(coder.code(x)))
    pca = pca_explained_variance(x, max(round(mean_active), 1))
    return Baselines(len(x), pca, explained_variance(x, codes @ atoms.T), own)
