"""Table 1: FISTA and the seven variational methods at two numbers of samples."""

from collections.abc import Sequence
from pathlib import Path

from softspike.report.grid import Grid
from softspike.reproduce import table1_figure
from softspike.reproduce.cell import BEST, FISTA, SINGLE_SWITCHES, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope, variants_of
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import LENGTH, SOLVED, Measured, length, off_by, short, solved
from softspike.reproduce.setting import Setting
from softspike.reproduce.side_by_side import side_by_side
from softspike.reproduce.switch_findings import switch_findings
from softspike.reproduce.table1_notes import PUBLISHED_NOTE, right_notes
from softspike.reproduce.verdict import verdicts

__all__ = ["Table1", "published_grid", "right_grid", "switch_grid"]

# Explained variance (active count), and other columns with the figure they show and its digits.
_RATES = {"one sample": "one_sample", "best of J": "best_sample", "without noise": "deterministic"}
_RIGHT = {
    "bound, nats": ("bound", 4),
    "total correlation, bits": ("total_correlation", 3),
    "corrected MI, bits": ("multi_information.corrected", 2),
    "Jaccard index": ("jaccard.index", 3),
    "between inputs": ("jaccard.between_inputs", 3),
}
_PUBLISHED = [
    "method", "J", *LENGTH, "loss", "paper", "off by", "‖A‖ term", "z = 0", "MI, bits", "paper", "off by",
    "prior alone", "paper's IWAE",
]  # fmt: skip


_SWITCHED = """\
The last columns: explained variance of the best sample (active components), and of OMP and FISTA on the same dictionary
with as many active."""


class Table1(Experiment):
    name, title = "table1", "Table 1: inference methods with a linear generator"
    compares_switches = True

    def cells(self, scope: Scope) -> list[Cell]:
        found: dict[tuple[str, str], Cell] = {}
        for variant in scope.variants:
            for method in scope.methods:
                for n_samples in (1, scope.setting.many_samples):
                    for seed in scope.seeds:
                        cell = Cell(method, BEST, n_samples, variant, seed)
                        found.setdefault((cell.name, variant.name), cell)
        return list(found.values())

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        switched = [row for row in rows if row.cell.variant.name in SINGLE_SWITCHES and row.cell.method.departs]
        whole = [row for row in rows if row.cell.variant.name not in SINGLE_SWITCHES]
        grids = []
        for variant in variants_of(whole):
            own = [row for row in whole if row.cell.variant.name == variant.name]
            grids += [right_grid(own, variant.title, setting), published_grid(own, variant.title, setting)]
        both = side_by_side(whole, setting)
        grids += [] if both is None else [both]
        grids += [switch_grid(switched, whole, setting)] if switched else []
        return Report(grids, [*verdicts(whole), *switch_findings(rows)] if setting.paper_like else [])

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        table1_figure.draw(rows, setting, path)
        return [path]


def right_grid(rows: Sequence[Measured], whose: str, setting: Setting) -> Grid:
    """What tells good codes from bad ones."""
    lines = []
    for row in rows:
        rates = [_rate(row, name) for name in _RATES.values()]
        others = [_mean(row, path, digits) for path, digits in _RIGHT.values()]
        lines.append([row.cell.method.title, _samples(row), *length(row), *rates, *solved(row), *others])
    columns = ["method", "J", *LENGTH, *_RATES, *SOLVED, *_RIGHT]
    return Grid(f"Codes and their statistics ({whose})", columns, lines, right_notes(rows, setting))


def _rate(row: Measured, which: str) -> str:
    explained, active = row.mean(f"{which}.explained_variance"), row.mean(f"{which}.active")
    return "diverged" if explained is None else f"{explained:.3f} ({short(active, 3)})"


def published_grid(rows: Sequence[Measured], whose: str, setting: Setting) -> Grid:
    """The paper's own measures, each with the baseline that it lacks."""
    lost = [f"{row.cell.label}: {row.diverged} of {len(row.records)}" for row in rows if row.diverged]
    diverged = f"Diverged runs are left out of the means: {'; '.join(lost)}." if lost else ""
    lines = [_published_row(row, setting) for row in rows]
    return Grid(f"As published ({whose})", _PUBLISHED, lines, [PUBLISHED_NOTE, diverged])


def switch_grid(switched: Sequence[Measured], whole: Sequence[Measured], setting: Setting) -> Grid:
    """The scripts' conventions with one switch set as the paper says, between the scripts' own and the paper's."""
    lines = []
    for method, n_samples in dict.fromkeys((row.cell.method, row.cell.n_samples) for row in switched):
        for row in [*whole, *switched]:
            if (row.cell.method, row.cell.n_samples) == (method, n_samples):
                title, samples, *figures = _published_row(row, setting)
                lines.append(
                    [title, row.cell.variant.title, samples, *figures, _rate(row, "best_sample"), *solved(row)]
                )
    columns = ["method", "conventions", *_PUBLISHED[1:], "best of J", *SOLVED]
    return Grid("One switch at a time", columns, lines, [_SWITCHED])


def _published_row(row: Measured, setting: Setting) -> list[str]:
    paper = TABLE1.get(row.cell.row)
    loss, shared = row.mean("loss.total"), row.mean("multi_information.published")
    fair = setting.paper_like and paper is not None
    return [
        row.cell.method.title,
        _samples(row),
        *length(row),
        row.text("loss.total", 4),
        short(paper.loss if paper else None, 3),
        off_by(loss, paper.loss) if paper and fair else "–",
        _mean(row, "loss.norm", 3),
        _mean(row, "loss.zero", 3),
        row.text("multi_information.published", 4),
        short(paper.multi_information if paper else None, 3),
        off_by(shared, paper.multi_information) if paper and fair else "–",
        _mean(row, "prior_multi_information", 3),
        short(paper.iwae if paper else None, 3),
    ]


def _samples(row: Measured) -> str:
    return "–" if row.cell.method is FISTA else str(row.cell.n_samples)


def _mean(row: Measured, path: str, digits: int) -> str:
    if row.records and not row.good:
        return "diverged"
    return short(row.mean(path), digits)
