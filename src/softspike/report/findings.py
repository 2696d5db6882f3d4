"""Everything a report says about one trained coder on one data set. Measured here, drawn elsewhere."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from softspike.coder import Coder
from softspike.data import Rows, StandardisedRows, Standardiser
from softspike.data.chunks import chunks
from softspike.generator import LinearGenerator
from softspike.metric import (
    Baselines,
    Consistency,
    Frontier,
    Histograms,
    Neighbours,
    Partners,
    SimulatedCalibration,
    Summary,
    baselines,
    estimated_dictionary,
    firing_rate,
    likeness_order,
    mean_size,
    nearest_atoms,
    partners,
    rate_distortion,
    simulated_calibration,
    summarise,
    support_consistency,
    value_histograms,
)
from softspike.metric.summary import Tally
from softspike.solver import rows_held

__all__ = ["STAGES", "Figures", "Findings", "measure", "measure_figures"]

STAGES = (
    "coding the inputs", "baselines", "usage and partners of each atom", "similar atoms",
    "rate against distortion", "support consistency", "calibration",
)  # fmt: skip

_BASELINE_ROWS, _FEW_ROWS, _PURSUIT_ROWS, _ESTIMATION_ROWS = 2000, 1000, 256, 4000
_PURSUIT_NUMBERS = 2**25  # entries of the bases of a rate–distortion pursuit: seconds, not minutes
_COUNTS = (0.25, 0.5, 0.75, 1.0, 1.5)  # points of the rate–distortion curve, in units of the run's own count
_NOISE = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
_NEAREST = 6


class Figures(NamedTuple):
    """The headline and what to judge it by."""

    summary: Summary
    baselines: Baselines


class Findings(NamedTuple):
    """n inputs, d components, D features; numpy arrays in the order of the components."""

    figures: Figures
    codes: sparse.csr_matrix  # (n, d), in units of standardised data
    atoms: np.ndarray  # (d, D), in units of standardised data; of a generator that is no dictionary, its linear picture
    unexplained: np.ndarray  # (n,) ‖x − x̂‖²/‖x − mean‖² of each input
    rate: np.ndarray  # (d,) share of inputs on which a component is active
    probability: np.ndarray  # (d,) mean of P(z ≠ 0 | x)
    size: np.ndarray  # (d,) mean |z| where active
    histograms: Histograms
    partners: Partners
    neighbours: Neighbours
    likeness: np.ndarray  # (d,) an order in which similar atoms are side by side
    frontier: Frontier | None  # None without a dictionary, for dense codes, and where a pursuit would take too long
    consistency: Consistency
    calibration: SimulatedCalibration | None  # None for coders without a law of z


def measure(
    coder: Coder,
    standardiser: Standardiser,
    rows: Rows,
    figures: Figures | None = None,
    told: Callable[[str], object] = lambda stage: None,
) -> Findings:
    """Measure a trained coder on rows; `figures` that are known are taken as they are, `told` hears the stages."""
    standard = StandardisedRows(rows, standardiser)
    told(STAGES[0])
    codes, probability, unexplained, summary = _code(coder, standard)
    atoms = _atoms(coder, standard, codes)
    told(STAGES[1])
    few = _take(standard, _BASELINE_ROWS, standardiser.mean.device)
    figures = Figures(summary, baselines(coder, few, summary.active)) if figures is None else figures
    told(STAGES[2])
    rate = firing_rate(codes)
    per_atom = rate, probability, mean_size(codes), value_histograms(codes), partners(codes, _NEAREST)
    told(STAGES[3])
    likeness = nearest_atoms(atoms, _NEAREST), likeness_order(atoms, int(rate.argmax())).numpy()
    told(STAGES[4])
    frontier = _frontier(coder, few, figures.summary.active)
    told(STAGES[5])
    consistency = support_consistency(coder, few[:_FEW_ROWS], _NOISE)
    told(STAGES[6])
    calibration = simulated_calibration(coder, few)
    return Findings(
        figures, codes, atoms.numpy(), unexplained, *per_atom, *likeness, frontier, consistency, calibration
    )


def measure_figures(coder: Coder, standard: StandardisedRows) -> Figures:
    """The summary over all rows, and the baselines over a few."""
    device = standard.standardiser.mean.device
    summary = summarise(coder, standard, device)
    return Figures(summary, baselines(coder, _take(standard, _BASELINE_ROWS, device), summary.active))


def _atoms(coder: Coder, standard: StandardisedRows, codes: sparse.csr_matrix) -> Tensor:
    """The dictionary (d, D), or the one that least squares reads from the codes where the generator is a network."""
    if isinstance(coder.generator, LinearGenerator):
        return coder.generator.atoms.detach().T.float().cpu()
    n = min(len(standard), _ESTIMATION_ROWS)
    x = standard.take(torch.arange(n)).cpu()
    return estimated_dictionary(x, torch.from_numpy(codes[:n].toarray())).atoms.T.float()


def _take(rows: Rows, count: int, device: torch.device) -> Tensor:
    return rows.take(torch.arange(min(len(rows), count))).to(device)


@torch.no_grad()
def _code(coder: Coder, standard: StandardisedRows) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray, Summary]:
    """Codes (n, d), the mean of γ (d,), the unexplained share of each input (n,) and the summary, chunk by chunk."""
    device = standard.standardiser.mean.device
    tally = Tally(standard.n_features, coder.generator.n_components, device)
    blocks, shares, probability = [], [], torch.zeros((), dtype=torch.float64)
    for x in _chunks(standard, device):
        z = coder.code(x)
        blocks.append(sparse.csr_matrix(z.cpu().numpy()))
        probability = probability + coder.activation_probability(x).double().sum(0).cpu()
        energy, rebuilt = x.square().sum(-1).clamp_min(1e-30), coder.generator(z)
        shares.append(((x - rebuilt).square().sum(-1) / energy).cpu().numpy())
        tally.add(x, z, rebuilt)
    codes = sparse.vstack(blocks, format="csr")
    return codes, (probability / len(standard)).numpy(), np.concatenate(shares), tally.summary()


def _chunks(rows: Rows, device: torch.device) -> Iterator[Tensor]:
    for chunk in chunks(rows, 1024):
        yield chunk.x.to(device)


def _frontier(coder: Coder, few: Tensor, active: float) -> Frontier | None:
    """On as many rows as a pursuit at the largest count takes seconds for."""
    if not isinstance(coder.generator, LinearGenerator):
        return None
    n_features, d = coder.generator.atoms.shape
    counts = sorted({min(factor * active, float(d)) for factor in _COUNTS})
    n = min(rows_held(_PURSUIT_NUMBERS, (n_features, d), counts[-1]), _PURSUIT_ROWS, len(few))
    if n < min(64, len(few)) or active > 0.5 * n_features or active <= 0:
        return None
    return rate_distortion(coder, few[:n], counts, few)
