"""The figures a run is judged by, each beside what simpler codes of the same size reach."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows
from softspike.metric.reconstruction import explained_variance, pca_explained_variance
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


class Baselines(NamedTuple):
    """Explained variance of rivals at the same mean count, on at most `n_samples` of the data."""

    n_samples: int
    pca: float  # as many principal components as the mean count, rounded
    omp: float  # matching pursuit on the same dictionary, one global tolerance, the same mean count


@torch.no_grad()
def summarise(coder: Coder, rows: Rows, device: torch.device | str = "cpu", chunk: int = 4096) -> Summary:
    """One pass over the rows in chunks; memory does not grow with their number."""
    n, fired = len(rows), None
    residual = active = loss = zero = torch.zeros((), dtype=torch.float64)
    total, squares = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for first in range(0, n, chunk):
        x = rows.take(torch.arange(first, min(first + chunk, n))).to(device)
        z = coder.code(x)
        misfit = (x - coder.generator(z)).square().sum(-1).double()
        on = z != 0
        fired = on.any(0) if fired is None else fired | on.any(0)
        residual, active = residual + misfit.sum().cpu(), active + on.sum().double().cpu()
        loss = loss + (0.5 * misfit.sum() + 20 * z.abs().sum().double()).cpu()
        zero = zero + 0.5 * x.square().sum().double().cpu()
        total, squares = total + x.double().sum(0).cpu(), squares + x.double().square().sum().cpu()
    variance = squares - total.square().sum() / n
    d = len(fired) if fired is not None else 0
    return Summary(
        n, float(1 - residual / variance), float(active / n), float(active / n / d),
        int((~fired).sum()) if fired is not None else 0, d, float(loss / n), float(zero / n),
    )  # fmt: skip


@torch.no_grad()
def baselines(coder: Coder, x: Tensor, mean_active: float) -> Baselines:
    """PCA and OMP at the mean count `mean_active` on the rows x."""
    atoms = coder.generator.atoms.detach()
    codes = omp_at_mean_count(x, atoms, mean_active)
    return Baselines(
        len(x), pca_explained_variance(x, max(round(mean_active), 1)), explained_variance(x, codes @ atoms.T)
    )
