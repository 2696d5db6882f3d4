"""The picture of Table 1: the published measures beside the paper's, and what the codes are worth."""

from collections.abc import Sequence
from pathlib import Path

from softspike.report.plot import figure_saved
from softspike.reproduce.cell import METHODS
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import Measured
from softspike.reproduce.setting import Setting

__all__ = ["draw"]


def draw(rows: Sequence[Measured], setting: Setting, path: Path) -> None:
    """Left, middle: ours against the paper's, one mark per row. Right: explained variance against active count."""
    colours = {name: f"C{i}" for i, name in enumerate(METHODS)}
    rows = [row for row in rows if row.good]
    with figure_saved(path, 1, 3, (15, 4.8), setting.label) as (loss, shared, rate):
        for axes, measure, attribute in (
            (loss, "loss.total", "loss"),
            (shared, "multi_information.published", "multi_information"),
        ):
            known = [row for row in rows if row.cell.row in TABLE1]
            for row in known:
                theirs = getattr(TABLE1[row.cell.row], attribute)
                axes.plot(theirs, row.mean(measure), _marker(row), color=colours[row.cell.method.name], ms=6)
            _diagonal(axes, [getattr(TABLE1[row.cell.row], attribute) for row in known])
            axes.set(xscale="log", yscale="log", xlabel="paper", ylabel="here")
        loss.set(title="loss as published (● ■ J = 20, ▼ ◆ J = 1)")
        shared.set(title="multi-information as published, bits")
        for row in rows:
            colour, active = colours[row.cell.method.name], row.mean("best_sample.active")
            rate.plot(active, row.mean("best_sample.explained_variance"), _marker(row), color=colour, ms=6)
            if row.mean("matched.omp") is not None:
                rate.plot(active, row.mean("matched.omp"), "x", color=colour, ms=5)
        rate.set(title="best sample; × OMP, same dictionary and count", xlabel="active components")
        rate.set(ylabel="explained variance", xscale="log")
        ticks = [n for n in (1, 2, 5, 10, 20, 50, 100, 200) if rate.get_xlim()[0] <= n <= rate.get_xlim()[1]]
        rate.set_xticks(ticks, map(str, ticks))
        rate.minorticks_off()
        seen = list(dict.fromkeys(row.cell.method.name for row in rows))
        for name in seen:
            rate.plot([], [], "o", color=colours[name], label=METHODS[name].title)
        if rows:
            rate.legend(fontsize=7)


def _marker(row: Measured) -> str:
    """Filled for the larger J, hollow-looking for J = 1; a square for the paper's equations."""
    if row.cell.variant.name == "equations":
        return "s" if row.cell.n_samples > 1 else "D"
    return "o" if row.cell.n_samples > 1 else "v"


def _diagonal(axes: object, values: Sequence[float]) -> None:
    if values:
        ends = [0.8 * min(values), 1.2 * max(values)]
        axes.plot(ends, ends, color="0.7", lw=1)  # type: ignore[attr-defined]
