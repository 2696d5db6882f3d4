"""Table 2: straight-through against subgradient for the thresholded Laplacian: what collapses, what diverges."""

from collections.abc import Sequence
from pathlib import Path

from softspike.report.grid import Grid
from softspike.report.plot import figure_saved
from softspike.reproduce.cell import BEST, METHODS, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope
from softspike.reproduce.paper import COLLAPSE
from softspike.reproduce.rows import LENGTH, SOLVED, Measured, length, short, solved
from softspike.reproduce.setting import Setting
from softspike.reproduce.table2_findings import is_subgradient, percent, table2_findings

__all__ = ["Table2"]

_COLUMNS = [
    "gradient", "J", *LENGTH, "diverged", "paper", "never active", "posterior collapse", "paper", "feature collapse",
    "paper", "loss", "z = 0", "explained variance, best of J", "active", *SOLVED,
]  # fmt: skip
_NOTE = """\
Shares of the components, means over the runs that did not diverge. Posterior collapse: KL ≤ 1e-2 on at least 95 % of
inputs. Feature collapse: |z| ≤ 1e-2 on at least 95 % of inputs, which a healthy rare component also meets. Never
active: zero on every validation patch. OMP (one tolerance) and FISTA: what they explain on the same dictionary with as
many active. The paper's 100 % came from a branch that applied the scale twice; the subgradient here is the correct
one."""


class Table2(Experiment):
    name, title = "table2", "Table 2: gradients through the threshold"
    methods = ("thresholded-laplacian",)

    def cells(self, scope: Scope) -> list[Cell]:
        return [
            Cell(METHODS["thresholded-laplacian"], BEST, n_samples, variant, seed)
            for own in scope.variants
            for variant in (own, own.with_subgradient())
            for n_samples in (1, scope.setting.many_samples)
            for seed in scope.seeds
        ]

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        grid = Grid("Straight-through against subgradient", _COLUMNS, [_row(row) for row in rows], [_NOTE])
        return Report([grid], table2_findings(rows) if setting.paper_like else [])

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        names = {"posterior": "posterior collapse", "feature": "feature collapse", "never_active": "never active"}
        with figure_saved(path, 1, 1, (9, 4), setting.label) as (axes,):
            for number, row in enumerate(rows):
                shares = [row.mean(f"collapse.{name}") for name in names]
                places = [i + 0.8 * (number + 0.5) / len(rows) - 0.4 for i in range(len(names))]
                heights = [0.0 if share is None else 100 * share for share in shares]
                label = f"{_gradient(row)}, J = {row.cell.n_samples}" + (" (diverged)" if not row.good else "")
                axes.bar(places, heights, 0.8 / len(rows), label=label)
            axes.set(xticks=range(len(names)), xticklabels=names.values(), ylabel="% of components", ylim=(0, 105))
            axes.legend(fontsize=7)
        return [path]


def _gradient(row: Measured) -> str:
    kind = "subgradient" if is_subgradient(row) else "straight-through"
    return f"{kind} ({row.whose})"


def _row(row: Measured) -> list[str]:
    paper = COLLAPSE.get(("subgradient" if is_subgradient(row) else "straight-through", row.cell.n_samples))
    return [
        _gradient(row),
        str(row.cell.n_samples),
        *length(row),
        f"{row.diverged} of {len(row.records)}",
        "–" if paper is None else ("3 of 3" if paper.posterior is None else "0 of 3"),
        percent(row.mean("collapse.never_active")),
        percent(row.mean("collapse.posterior")),
        "–" if paper is None else percent(paper.posterior),
        percent(row.mean("collapse.feature")),
        "–" if paper is None else percent(paper.feature),
        row.text("loss.total", 4),
        short(row.mean("loss.zero"), 3),
        row.text("best_sample.explained_variance", 3),
        row.text("best_sample.active", 3),
        *solved(row),
    ]
