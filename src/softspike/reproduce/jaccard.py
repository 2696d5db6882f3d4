"""The sampling study: how consistent supports are after average, max and importance-weighted training."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.grid import Grid
from softspike.report.plot import figure_saved
from softspike.reproduce.cell import METHODS, SAMPLINGS, WEIGHTED, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope
from softspike.reproduce.jaccard_findings import jaccard_findings
from softspike.reproduce.paper import SAMPLING_LOSS
from softspike.reproduce.rows import LENGTH, SOLVED, Measured, length, off_by, short, solved
from softspike.reproduce.setting import Setting

__all__ = ["Jaccard"]

_COLUMNS = [
    "training", "conventions", "J", *LENGTH, "Jaccard index", "between inputs", "used components", "active",
    "explained variance, best of J", *SOLVED, "published distance", "loss", "paper", "off by", "z = 0",
]  # fmt: skip
_NOTE = """\
The Jaccard index of the supports of 20 draws for one validation patch, over components with ‖a‖² > 0.1, mean over pairs
and patches; between inputs is the same for draws for different patches: what chance gives, and the more, the more
components are active. At chance is what is within two standard errors over patches of it, or within 1 %. The published
distance is one minus the index, every draw's comparison with itself included: lower is more consistent. Importance-
weighted training is on the true bound, with the subgradient through the threshold. OMP (one tolerance) and FISTA: what
they explain on the same dictionary with as many active."""


class Jaccard(Experiment):
    name, title = "jaccard", "Support consistency by training objective"
    methods, samplings = ("thresholded-laplacian",), tuple(SAMPLINGS)

    def cells(self, scope: Scope) -> list[Cell]:
        """The true bound asks nothing of μ where z = 0. Straight-through gradients would let it run away there, so that
        arm is trained with the subgradient, which is the bound's own wherever z ≠ 0."""
        return [
            Cell(METHODS["thresholded-laplacian"], sampling, n_samples, variant, seed)
            for own in scope.variants
            for n_samples in (scope.setting.many_samples, scope.setting.most_samples)
            for sampling in scope.samplings
            for variant in [own.with_subgradient() if sampling is WEIGHTED else own]
            for seed in scope.seeds
        ]

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        grid = Grid("Consistency of supports", _COLUMNS, [_row(row, setting) for row in rows], [_NOTE])
        return Report([grid], jaccard_findings(rows) if setting.paper_like else [])

    def pictured(self, rows: Sequence[Measured]) -> Sequence[Measured]:
        """All: the legend says how long each was trained."""
        return rows

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        budgets = sorted({row.cell.n_samples for row in rows}) or [setting.many_samples]
        known = [row for row in rows if row.values("jaccard.index")]
        n_bins = math.gcd(*(len(counts) for row in known for counts in _histograms(row)))
        with figure_saved(path, 1, len(budgets), (6 * len(budgets), 4), setting.images) as all_axes:
            for axes, n_samples in zip(all_axes, budgets, strict=True):
                for row in known:
                    if row.cell.n_samples == n_samples:
                        axes.stairs(density(_histograms(row), n_bins), np.linspace(0, 1, n_bins + 1), label=_label(row))
                axes.set_xlim(0, _reach(known))
                axes.set(title=f"J = {n_samples}", xlabel="Jaccard index of one input's draws", ylabel="density")
                axes.set_ylim(top=1.4 * axes.get_ylim()[1])  # room for the legend
                axes.legend(fontsize=8, loc="upper right")
        return [path]


def density(histograms: Sequence[Sequence[int]], n_bins: int) -> np.ndarray:
    """Of all the counts together, on `n_bins` equal bins of [0, 1]; each histogram has a multiple of as many."""
    counts = np.sum([np.reshape(histogram, (n_bins, -1)).sum(1) for histogram in histograms], axis=0)
    return counts / counts.sum() * n_bins


def _histograms(row: Measured) -> list[list[int]]:
    return [record["figures"]["jaccard"]["histogram"] for record in row.good]


def _reach(rows: Sequence[Measured]) -> float:
    """The largest index that occurs."""
    histograms = [counts for row in rows for counts in _histograms(row)]
    shares = [(np.flatnonzero(counts)[-1] + 1) / len(counts) for counts in histograms if any(counts)]
    return max(shares, default=1.0)


def _label(row: Measured) -> str:
    return f"{row.cell.sampling.title} ({row.cell.variant.name}), {row.steps:,} steps"


def _row(row: Measured, setting: Setting) -> list[str]:
    theirs = SAMPLING_LOSS.get((row.cell.sampling.name, row.cell.n_samples)) if setting.paper_like else None
    return [
        row.cell.sampling.title,
        row.cell.variant.name,
        str(row.cell.n_samples),
        *length(row),
        row.text("jaccard.index", 3),
        row.text("jaccard.between_inputs", 3),
        row.text("jaccard.used_components", 3),
        row.text("best_sample.active", 3),
        row.text("best_sample.explained_variance", 3),
        *solved(row),
        row.text("jaccard.published_distance", 3),
        row.text("loss.total", 4),
        short(theirs, 4),
        off_by(row.mean("loss.total"), theirs),
        short(row.mean("loss.zero"), 3),
    ]
