"""Table 2: straight-through against subgradient for the thresholded Laplacian: what collapses, what diverges."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from softspike.report.grid import Grid
from softspike.report.plot import figure_saved
from softspike.reproduce.cell import BEST, METHODS, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope
from softspike.reproduce.paper import COLLAPSE
from softspike.reproduce.rows import Measured, shorter_runs
from softspike.reproduce.setting import Setting

__all__ = ["Table2"]

_COLUMNS = [
    "gradient", "J", "diverged", "paper", "never active", "posterior collapse", "paper", "feature collapse", "paper",
    "loss", "explained variance, best of J", "active",
]  # fmt: skip
_NOTE = """\
Shares of the components, means over the runs that did not diverge. Posterior collapse: KL ≤ 1e-2 on at least 95 % of
inputs. Feature collapse: |z| ≤ 1e-2 on at least 95 % of inputs, which a healthy rare component also meets. Never
active: zero on every validation patch. The paper's 100 % came from a branch that applied the scale twice; the
subgradient here is the correct one."""


class Table2(Experiment):
    name, title = "table2", "Table 2: gradients through the threshold"

    def cells(self, scope: Scope) -> list[Cell]:
        return [
            Cell(METHODS["thresholded-laplacian"], BEST, n_samples, variant, seed)
            for own in scope.variants
            for variant in (own, own.with_subgradient())
            for n_samples in (1, scope.setting.many_samples)
            for seed in scope.seeds
        ]

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        grid = Grid(
            "Straight-through against subgradient", _COLUMNS, [_row(row) for row in rows], [_NOTE, shorter_runs(rows)]
        )
        return Report([grid], _findings(rows) if setting.paper_like else [])

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


def is_subgradient(row: Measured) -> bool:
    return row.cell.variant.name.endswith("subgradient")


def _gradient(row: Measured) -> str:
    kind = "subgradient" if is_subgradient(row) else "straight-through"
    return f"{kind} ({row.cell.variant.name.removesuffix('-subgradient')})"


def _row(row: Measured) -> list[str]:
    paper = COLLAPSE.get(("subgradient" if is_subgradient(row) else "straight-through", row.cell.n_samples))
    return [
        _gradient(row),
        str(row.cell.n_samples),
        f"{row.diverged} of {len(row.records)}",
        "–" if paper is None else ("3 of 3" if paper.posterior is None else "0 of 3"),
        _percent(row.mean("collapse.never_active")),
        _percent(row.mean("collapse.posterior")),
        "–" if paper is None else _percent(paper.posterior),
        _percent(row.mean("collapse.feature")),
        "–" if paper is None else _percent(paper.feature),
        row.text("loss.total", 4),
        row.text("best_sample.explained_variance", 3),
        row.text("best_sample.active", 3),
    ]


def _percent(share: float | None) -> str:
    return "NaN" if share is None else f"{100 * share:.2f} %"


def _findings(rows: Sequence[Measured]) -> list[str]:
    """The paper's claim: the subgradient diverges (J = 1) or collapses entirely (J = 20); straight-through does not."""
    return [_finding(row, _partner(row, rows)) for row in rows if is_subgradient(row)]


def _partner(row: Measured, rows: Sequence[Measured]) -> Measured | None:
    """The straight-through row of the same conventions and J."""
    wanted = (row.cell.variant.name.removesuffix("-subgradient"), row.cell.n_samples)
    return next((other for other in rows if (other.cell.variant.name, other.cell.n_samples) == wanted), None)


def _finding(row: Measured, partner: Measured | None) -> str:
    posterior, feature = (row.values(f"collapse.{kind}") for kind in ("posterior", "feature"))
    entirely = sum(max(pair) > 0.99 for pair in zip(posterior, feature, strict=True))
    usual = (partner.mean("collapse.posterior") if partner else None) or 0.0
    if row.diverged + entirely == len(row.records):
        verdict = "as the paper claims"
    elif row.diverged + entirely or mean(posterior) > usual + 0.05:
        verdict = "the paper's claim holds in part"
    else:
        verdict = "the paper's claim does not hold"
    return (
        f"The correct subgradient ({row.cell.variant.name.removesuffix('-subgradient')}), J = {row.cell.n_samples}: "
        f"{row.diverged} of {len(row.records)} runs diverge, {entirely} collapse entirely; posterior collapse "
        f"{_percent(row.mean('collapse.posterior'))}, against {_percent(usual)} with straight-through: {verdict}."
    )
