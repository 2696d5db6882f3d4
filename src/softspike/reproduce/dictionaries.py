"""The dictionaries of all methods: one picture each, and how much their atoms repeat one another."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from softspike.report.figure import save_dictionary
from softspike.report.grid import Grid
from softspike.reproduce.experiment import Atoms, Report
from softspike.reproduce.rows import Measured
from softspike.reproduce.setting import Setting
from softspike.reproduce.table1 import Table1

__all__ = ["Dictionaries"]

_COLUMNS = ["method", "conventions", "J", "atoms with ‖a‖² > 0.1", "median norm", "nearest other atom, |cos|"]


class Dictionaries(Table1):
    name, title = "dictionaries", "The learned dictionaries"

    def report(self, rows: Sequence[Measured], setting: Setting) -> Report:
        notes = ["The last column is the mean over atoms of the largest |cosine| with another atom: 1 is repetition."]
        return Report([Grid("Dictionaries", _COLUMNS, [_row(row) for row in _distinct(rows)], notes)], [])

    def pictured(self, rows: Sequence[Measured]) -> Sequence[Measured]:
        """One per method: the largest J, the conventions that come first."""
        chosen: dict[str, Measured] = {}
        for row in rows:
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


def _row(row: Measured) -> list[str]:
    samples = "–" if row.cell.row[1] is None else str(row.cell.n_samples)
    whose = row.cell.variant.name if row.cell.method.departs else "–"
    return [
        row.cell.method.title, whose, samples,
        row.text("dictionary.used", 3), row.text("dictionary.median_norm", 3), row.text("dictionary.nearest", 3),
    ]  # fmt: skip
