"""From the figures of cells to the rows of a table: means over seeds, written out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from softspike.reproduce.cell import Cell

__all__ = ["LENGTH", "SOLVED", "Measured", "figure_at", "length", "longest", "off_by", "rows_of", "short", "solved"]

LENGTH = ["steps", "seeds"]  # the columns that `length` fills: how long a row was trained, how often
SOLVED = ["OMP", "FISTA"]  # and `solved`: their explained variance on the row's dictionary at its count


@dataclass(frozen=True)
class Measured:
    """The cells of one row, which differ in their seed alone, and what was measured of them."""

    cell: Cell  # the first of them
    records: Sequence[Mapping[str, Any]]
    seeds: Sequence[int] = ()  # of the records

    @property
    def good(self) -> list[Mapping[str, Any]]:
        """Those whose training did not diverge."""
        return [record for record in self.records if not record["training"]["diverged"]]

    @property
    def steps(self) -> int:
        """Of training; 0 where nothing was measured."""
        return self.records[0]["training"]["steps"] if self.records else 0

    @property
    def whose(self) -> str:
        """The conventions, by name; a gradient that replaces theirs is told by what is compared."""
        return self.cell.variant.name.removesuffix("-subgradient")

    @property
    def diverged(self) -> int:
        return len(self.records) - len(self.good)

    def values(self, path: str) -> list[float]:
        """One number per good seed; `path` is dotted, as in 'loss.total'."""
        found = (figure_at(record["figures"], path) for record in self.good)
        return [float(value) for value in found if value is not None]

    def by_seed(self, path: str) -> dict[int, float]:
        """The number of each good seed."""
        pairs = zip(self.seeds, self.records, strict=True)
        found = {seed: figure_at(r["figures"], path) for seed, r in pairs if not r["training"]["diverged"]}
        return {seed: float(value) for seed, value in found.items() if value is not None}

    def mean(self, path: str) -> float | None:
        values = self.values(path)
        return mean(values) if values else None

    def spread(self, path: str) -> float | None:
        values = self.values(path)
        return stdev(values) if len(values) > 1 else None

    def text(self, path: str, digits: int = 3) -> str:
        """The mean, with the standard deviation over seeds where there are several."""
        if self.mean(path) is None:
            return "diverged" if self.records and not self.good else "–"
        spread = self.spread(path)
        return short(self.mean(path), digits) + ("" if spread is None else f" ± {short(spread, 2)}")


def figure_at(figures: Any, path: str) -> Any:
    """What stands at a path of names with dots; None where there is nothing."""
    for name in path.split("."):
        figures = None if figures is None else figures.get(name)
    return figures


def rows_of(cells: Iterable[Cell], measured: Mapping[str, Any]) -> list[Measured]:
    """The cells that have been measured, seeds of one length gathered into rows, in the order of the cells."""
    rows: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        if cell.name in measured:
            steps = measured[cell.name]["training"]["steps"]
            rows.setdefault((cell.row, cell.variant.name, cell.sampling.name, steps), []).append(cell)
    return [
        Measured(group[0], [measured[cell.name] for cell in group], [cell.seed for cell in group])
        for group in rows.values()
    ]


def length(row: Measured) -> list[str]:
    """What stands in the columns LENGTH."""
    return [f"{row.steps:,}" if row.records else "–", str(len(row.records))]


def solved(row: Measured) -> list[str]:
    """What stands in the columns SOLVED."""
    return [short(row.mean(f"matched.{name}"), 3) for name in ("omp", "fista")]


def longest(rows: Sequence[Measured]) -> list[Measured]:
    """Those of the longest schedule among them: shorter ones say nothing of what differs between methods."""
    most = max((row.steps for row in rows), default=0)
    return [row for row in rows if row.steps == most]


def short(value: float | None, digits: int = 3) -> str:
    """`digits` significant ones, without an exponent; – for None."""
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{decimals}f}"


def off_by(ours: float | None, theirs: float | None) -> str:
    """The relative deviation from the paper, as in +1.2 %."""
    return "–" if ours is None or not theirs else f"{100 * (ours / theirs - 1):+.1f} %"
