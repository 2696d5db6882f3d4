"""The dictionaries of all methods: one picture each, and how much their atoms repeat one another."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.figure import save_dictionary
from softspike.report.grid import Grid
from softspike.reproduce.experiment import Atoms, Report
from softspike.reproduce.rows import LENGTH, Measured, length, longest, short
from softspike.reproduce.setting import Setting
from softspike.reproduce.table1 import Table1

__all__ = ["Dictionaries"]

_COLUMNS = ["method", "conventions", "J", *LENGTH, "atoms with ‖a‖² > 0.1", "median norm", "nearest other atom, |cos|"]

_NOTE = """\
Means over seeds. The last column is the mean over atoms of the largest |cosine| with another atom: 1 is repetition."""


class Dictionaries(Table1):
    name, title = "dictionaries", "The learned dictionaries"

    def report(self, rows: Sequence[Measured], setting: Setting, atoms: Atoms) -> Report:
        lines = [_row(row, atoms) for row in _distinct(longest(rows))]
        return Report([Grid("Dictionaries", _COLUMNS, lines, [_NOTE])], [])

    def pictured(self, rows: Sequence[Measured]) -> Sequence[Measured]:
        """One per method: the largest J, the conventions that come first."""
        chosen: dict[str, Measured] = {}
        for row in longest(rows):
            before = chosen.setdefault(row.cell.method.name, row)
            if row.cell.variant == before.cell.variant and row.cell.n_samples > before.cell.n_samples:
                chosen[row.cell.method.name] = row
        return list(chosen.values())

    def draw(self, rows: Sequence[Measured], setting: Setting, path: Path, atoms: Atoms) -> list[Path]:
        """A mosaic for each row, of its first seed, sorted by norm; in a folder of that name."""
        folder = path.with_suffix("")
        folder.mkdir(exist_ok=True)
        drawn = []
        for row in _distinct(rows):
            columns = atoms.get(row.cell.name)
            if columns is not None and np.isfinite(columns).all():
                drawn.append(folder / f"{row.cell.name}.png")
                side = setting.patch_size
                save_dictionary(drawn[-1], columns.T.astype(np.float32), (side, side))
        return drawn


def _distinct(rows: Sequence[Measured]) -> list[Measured]:
    """Without the second mention of what is the same under either convention."""
    return list({row.cell.name: row for row in rows}.values())


def _row(row: Measured, atoms: Atoms) -> list[str]:
    samples = "–" if row.cell.row[1] is None else str(row.cell.n_samples)
    whose = row.cell.variant.name if row.cell.method.departs else "–"
    family = row.cell.name.removesuffix(f".s{row.cell.seed}")
    kept = [value for name, value in atoms.items() if name.rpartition(".s")[0] == family and np.isfinite(value).all()]
    means = np.mean([_statistics(columns) for columns in kept], axis=0) if kept else [None] * 3
    steps, seeds = length(row)[0], str(len(kept))
    return [row.cell.method.title, whose, samples, steps, seeds, *(short(value, 3) for value in means)]


def _statistics(columns: np.ndarray) -> tuple[int, float, float]:
    """How many atoms are used, how long they are, and how much they repeat one another."""
    columns = columns.astype(np.float64)
    norms = np.linalg.norm(columns, axis=0)
    unit = columns[:, norms > 0] / norms[norms > 0]
    cosines = np.abs(unit.T @ unit)
    np.fill_diagonal(cosines, 0)
    return int((norms**2 > 0.1).sum()), float(np.median(norms)), float(cosines.max(0).mean()) if cosines.size else 0.0
