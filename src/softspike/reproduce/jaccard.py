"""The sampling study: how consistent supports are after average, max and importance-weighted training."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.grid import Grid
from softspike.report.plot import figure_saved
from softspike.reproduce.cell import BEST, MEAN, METHODS, WEIGHTED, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope
from softspike.reproduce.paper import SAMPLING_LOSS
from softspike.reproduce.rows import Measured, off_by, short, shorter_runs
from softspike.reproduce.setting import Setting

__all__ = ["Jaccard"]

_COLUMNS = [
    "training", "conventions", "J", "Jaccard index", "between inputs", "used components", "active",
    "explained variance, best of J", "published distance", "loss", "paper", "off by",
]  # fmt: skip
_NOTE = """\
The Jaccard index of the supports of 20 draws for one validation patch, over components with ‖a‖² > 0.1, mean over pairs
and patches; between inputs is the same for draws for different patches: what chance gives. The published distance is
one minus the index, every draw's comparison with itself included: lower is more consistent. Importance-weighted
training is on the true bound, with the subgradient through the threshold."""


class Jaccard(Experiment):
    name, title = "jaccard", "Support consistency by training objective"

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
        grid = Grid(
            "Consistency of supports", _COLUMNS, [_row(row, setting) for row in rows], [_NOTE, shorter_runs(rows)]
        )
        return Report([grid], _findings(rows) if setting.paper_like else [])

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        budgets = sorted({row.cell.n_samples for row in rows}) or [setting.many_samples]
        with figure_saved(path, 1, len(budgets), (6 * len(budgets), 4), setting.label) as all_axes:
            for axes, n_samples in zip(all_axes, budgets, strict=True):
                for row in rows:
                    if row.cell.n_samples == n_samples and row.values("jaccard.index"):
                        counts = np.sum([record["figures"]["jaccard"]["histogram"] for record in row.good], axis=0)
                        axes.stairs(counts / counts.sum(), np.linspace(0, 1, len(counts) + 1), label=_label(row))
                axes.set_xlim(0, _reach(rows))
                axes.set(
                    title=f"J = {n_samples}", xlabel="Jaccard index of one input's draws", ylabel="share of patches"
                )
                axes.legend(fontsize=8)
        return [path]


def _reach(rows: Sequence[Measured]) -> float:
    """The largest index that occurs."""
    histograms = [record["figures"]["jaccard"]["histogram"] for row in rows for record in row.good]
    shares = [(np.flatnonzero(counts)[-1] + 1) / len(counts) for counts in histograms if any(counts)]
    return max(shares, default=1.0)


def _label(row: Measured) -> str:
    return f"{row.cell.sampling.title} ({_whose(row)})"


def _whose(row: Measured) -> str:
    return row.cell.variant.name.removesuffix("-subgradient")


def _row(row: Measured, setting: Setting) -> list[str]:
    theirs = SAMPLING_LOSS.get((row.cell.sampling.name, row.cell.n_samples)) if setting.paper_like else None
    return [
        row.cell.sampling.title,
        _whose(row),
        str(row.cell.n_samples),
        row.text("jaccard.index", 3),
        row.text("jaccard.between_inputs", 3),
        row.text("jaccard.used_components", 3),
        row.text("best_sample.active", 3),
        row.text("best_sample.explained_variance", 3),
        row.text("jaccard.published_distance", 3),
        row.text("loss.total", 4),
        short(theirs, 4),
        off_by(row.mean("loss.total"), theirs),
    ]


def _findings(rows: Sequence[Measured]) -> list[str]:
    """The paper's claim: max-ELBO training gives more consistent supports than average training."""
    index = {(r.cell.variant.name, r.cell.n_samples, r.cell.sampling.name): r.mean("jaccard.index") for r in rows}
    said = []
    for variant, n_samples in dict.fromkeys((variant, n) for variant, n, _ in index):
        best, average = (index.get((variant, n_samples, name)) for name in (BEST.name, MEAN.name))
        if best is not None and average is not None:
            relation = "higher than" if best > average else "not higher than"
            said.append(
                f"J = {n_samples} ({variant}): max-ELBO training gives a Jaccard index of {best:.3f}, {relation} the "
                f"{average:.3f} of average training."
            )
    return said
