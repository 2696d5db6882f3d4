"""The dictionaries of all methods: one picture each, and how much their atoms repeat one another."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softspike.coder import Coder
from softspike.generator import atoms_of
from softspike.metric import used_components
from softspike.report.figure import save_dictionary
from softspike.report.grid import Grid
from softspike.reproduce.cell import Cell
from softspike.reproduce.experiment import Atoms, Report
from softspike.reproduce.rows import Measured
from softspike.reproduce.setting import Data, Setting
from softspike.reproduce.table1 import Table1

__all__ = ["Dictionaries"]

_COLUMNS = ["method", "conventions", "J", "atoms with ‖a‖² > 0.1", "median norm", "nearest other atom, |cos|"]


class Dictionaries(Table1):
    name, title, kind = "dictionaries", "The learned dictionaries", "dictionary"

    def measure(self, coder: Coder, cell: Cell, data: Data, setting: Setting) -> Mapping[str, Any]:
        atoms = atoms_of(coder.generator)
        norms = atoms.norm(dim=0)
        unit = atoms[:, norms > 0] / norms[norms > 0]
        cosines = (unit.T @ unit).abs().fill_diagonal_(0)
        return {
            "used": int(used_components(atoms).sum()),
            "median_norm": float(norms.median()),
            "nearest": float(cosines.amax(0).mean()) if cosines.numel() else None,
        }

    def report(self, rows: Sequence[Measured], setting: Setting) -> Report:
        notes = ["The last column is the mean over atoms of the largest |cosine| with another atom: 1 is repetition."]
        return Report([Grid("Dictionaries", _COLUMNS, [_row(row) for row in rows], notes)], [])

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
        for row in rows:
            columns = atoms.get(row.cell.name)
            if columns is not None and np.isfinite(columns).all():
                drawn.append(folder / f"{row.cell.name}.png")
                side = setting.patch_size
                save_dictionary(drawn[-1], columns.T.astype(np.float32), (side, side))
        return drawn


def _row(row: Measured) -> list[str]:
    samples = "–" if row.cell.row[1] is None else str(row.cell.n_samples)
    whose = row.cell.variant.name if row.cell.method.departs else "–"
    return [
        row.cell.method.title, whose, samples,
        row.text("used", 3), row.text("median_norm", 3), row.text("nearest", 3),
    ]  # fmt: skip
