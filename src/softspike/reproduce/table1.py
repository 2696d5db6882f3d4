"""Table 1: FISTA and the seven variational methods at two numbers of samples."""

from collections.abc import Sequence
from pathlib import Path

from softspike.report.grid import Grid
from softspike.reproduce import table1_figure
from softspike.reproduce.cell import BEST, FISTA, SINGLE_SWITCHES, Cell
from softspike.reproduce.experiment import Atoms, Experiment, Report, Scope, variants_of
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import Measured, off_by, short, shorter_runs
from softspike.reproduce.setting import Setting
from softspike.reproduce.verdict import verdicts

__all__ = ["Table1", "published_grid", "right_grid", "switch_grid"]

# Explained variance (active count), and other columns with the figure they show and its digits.
_RATES = {"one sample": "one_sample", "best of J": "best_sample", "without noise": "deterministic"}
_RIGHT = {
    "OMP": ("matched.omp", 3),
    "FISTA": ("matched.fista", 3),
    "bound, nats": ("bound", 4),
    "total correlation, bits": ("total_correlation", 3),
    "corrected MI, bits": ("multi_information.corrected", 2),
    "Jaccard index": ("jaccard.index", 3),
    "between inputs": ("jaccard.between_inputs", 3),
}
_RIGHT_NOTE = """\
First the explained variance of validation patches, with the mean number of active components in brackets; OMP (one
global tolerance) and FISTA run on the same dictionary at the count of the best sample. The bound is the importance-
weighted one with K = 200 and the true mixed densities, in nats per patch. Total correlation is that of a Gaussian with
the same correlations; corrected MI is the published estimator less its value on column-permuted codes: near 0 where
the estimator has no power left. The Jaccard index compares the supports of 20 draws for one input, over components
with ‖a‖² > 0.1; between inputs, those of draws for different inputs."""
_PUBLISHED = [
    "method", "J", "loss", "paper", "off by", "‖A‖ term", "z = 0", "MI, bits", "paper", "off by", "prior alone",
    "paper's IWAE",
]  # fmt: skip
_PUBLISHED_NOTE = """\
The loss is ½‖x−Az‖² + 20‖z‖₁ + 1e-3·‖A‖²; z = 0 is what coding nothing scores without the last term. Multi-information
(MI) is Σ H(zᵢ) − H(z) of binned codes; prior alone is the same for draws from the prior, which have seen no data. The
paper's IWAE column is no bound, and stands here for reference only."""


class Table1(Experiment):
    name, title = "table1", "Table 1: inference methods with a linear generator"

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
            grids += [right_grid(own, variant.title), published_grid(own, variant.title, setting)]
        if switched:
            grids.append(switch_grid(switched, whole, setting))
        return Report(grids, verdicts(whole) if setting.paper_like else [])

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        table1_figure.draw(rows, setting, path)
        return [path]


def right_grid(rows: Sequence[Measured], whose: str) -> Grid:
    """What tells good codes from bad ones."""
    lines = []
    for row in rows:
        rates = [_rate(row, name) for name in _RATES.values()]
        others = [_mean(row, path, digits) for path, digits in _RIGHT.values()]
        lines.append([row.cell.method.title, _samples(row), *rates, *others])
    return Grid(f"Codes and their statistics ({whose})", ["method", "J", *_RATES, *_RIGHT], lines, [_RIGHT_NOTE])


def _rate(row: Measured, which: str) -> str:
    explained, active = row.mean(f"{which}.explained_variance"), row.mean(f"{which}.active")
    return "diverged" if explained is None else f"{explained:.3f} ({short(active, 3)})"


def published_grid(rows: Sequence[Measured], whose: str, setting: Setting) -> Grid:
    """The paper's own measures, each with the baseline that it lacks."""
    lost = [f"{row.cell.label}: {row.diverged} of {len(row.records)}" for row in rows if row.diverged]
    diverged = f"Diverged runs are left out of the means: {'; '.join(lost)}." if lost else ""
    notes = [_PUBLISHED_NOTE, diverged, shorter_runs(rows)]
    title = f"As published ({whose})"
    return Grid(title, _PUBLISHED, [_published_row(row, setting) for row in rows], notes)


def switch_grid(switched: Sequence[Measured], whole: Sequence[Measured], setting: Setting) -> Grid:
    """The scripts' conventions with one switch set as the paper says, between the scripts' own and the paper's."""
    lines = []
    for method, n_samples in dict.fromkeys((row.cell.method, row.cell.n_samples) for row in switched):
        for row in [*whole, *switched]:
            if (row.cell.method, row.cell.n_samples) == (method, n_samples):
                title, samples, *figures = _published_row(row, setting)
                lines.append([title, row.cell.variant.title, samples, *figures])
    return Grid("One switch at a time", ["method", "conventions", *_PUBLISHED[1:]], lines, [])


def _published_row(row: Measured, setting: Setting) -> list[str]:
    paper = TABLE1.get(row.cell.row)
    loss, shared = row.mean("loss.total"), row.mean("multi_information.published")
    fair = setting.paper_like and paper is not None
    return [
        row.cell.method.title,
        _samples(row),
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
