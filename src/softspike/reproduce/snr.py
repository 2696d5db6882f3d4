"""The figure of gradient signal-to-noise ratios: Gaussian, spike-and-slab and thresholded Laplacian."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softspike.coder import Coder
from softspike.model import VariationalCoder
from softspike.report.grid import Grid
from softspike.report.plot import figure_saved
from softspike.reproduce.cell import BEST, METHODS, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope
from softspike.reproduce.gradients import snr_figures
from softspike.reproduce.paper import SNR
from softspike.reproduce.rows import LENGTH, Measured, length, off_by, short
from softspike.reproduce.setting import Data, Setting
from softspike.reproduce.snr_findings import snr_findings

__all__ = ["GradientSnr"]

_COLUMNS = [
    "method", "conventions", "J", *LENGTH, "inference network", "as published", "paper", "off by",
    "generator", "as published", "paper", "off by", "noise alone",
]  # fmt: skip

_NOTE = """\
Each parameter's |mean|/(std + 1e-9) of the bound's gradient over passes with new draws for the same patches, then the
mean over parameters: first of batches as in training; as published, of the whole validation set in every pass, which is
how the published scripts first had it. They had the spike-and-slab at a temperature of 0.01 there; here it is ½, where
training ends. A gradient of pure noise scores √(2/πn) after n passes, the last column: what is near it has not been
told apart from noise."""


class GradientSnr(Experiment):
    name, title, kind = "snr", "Gradient signal-to-noise ratio", "snr"
    methods = ("gaussian", "spike-and-slab", "thresholded-laplacian")

    def cells(self, scope: Scope) -> list[Cell]:
        found: dict[str, Cell] = {}
        for variant in scope.variants:
            for name in [m.name for m in scope.methods if m.name in self.methods]:
                for n_samples in (1, scope.setting.many_samples):
                    for seed in scope.seeds:
                        cell = Cell(METHODS[name], BEST, n_samples, variant, seed)
                        found.setdefault(cell.name, cell)
        return list(found.values())

    def measure(self, coder: Coder, cell: Cell, data: Data, setting: Setting) -> Mapping[str, Any]:
        assert isinstance(coder, VariationalCoder)
        return snr_figures(coder, data, setting)

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        passes = rows[0].good[0]["figures"]["passes"] if rows and rows[0].good else setting.snr_passes
        note = f"{passes:,} passes.\n{_NOTE}"
        lines = [_row(row, setting) for row in rows]
        grid = Grid("Gradient signal-to-noise ratio", _COLUMNS, lines, [note])
        return Report([grid], snr_findings(rows) if setting.paper_like else [])

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        places, labels = range(len(rows)), [row.cell.label for row in rows]
        with figure_saved(path, 1, 2, (13, 1.5 + 0.35 * len(rows)), setting.label) as both:
            for axes, part in zip(both, ("inference", "generator"), strict=True):
                axes.barh(places, [row.mean(part) or 0.0 for row in rows], 0.6, label="here", color="C0")
                published = [row.mean(f"published.{part}") or 0.0 for row in rows]
                axes.barh(places, published, 0.25, label="here, as published", color="C1")
                papers = [SNR.get((row.cell.method.name, row.cell.n_samples)) for row in rows]
                known = [(getattr(paper, part), i) for i, paper in enumerate(papers) if paper is not None]
                if known:
                    axes.plot(*zip(*known, strict=True), "k|", ms=14, label="paper")
                floor = next((row.mean("floor") for row in rows if row.good), None)
                if floor is not None:
                    axes.axvline(floor, color="0.6", lw=1, ls=":", label="noise alone")
                axes.set(
                    title=f"gradient SNR, {part}", yticks=places, yticklabels=labels if part == "inference" else []
                )
                axes.invert_yaxis()
                axes.legend(fontsize=8)
        return [path]


def _row(row: Measured, setting: Setting) -> list[str]:
    paper = SNR.get((row.cell.method.name, row.cell.n_samples))
    conventions = row.cell.variant.name if row.cell.method.departs else "–"
    cells = [row.cell.method.title, conventions, str(row.cell.n_samples), *length(row)]
    for part in ("inference", "generator"):
        theirs, published = None if paper is None else getattr(paper, part), f"published.{part}"
        fair = off_by(row.mean(published), theirs) if setting.paper_like else "–"
        cells += [row.text(part, 3), row.text(published, 3), short(theirs, 3), fair]
    return [*cells, short(row.mean("floor"), 2)]
