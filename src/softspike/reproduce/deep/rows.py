"""From the records of cells to means over seeds."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from softspike.reproduce.deep.cell import DENSE, METHODS
from softspike.reproduce.rows import figure_at, short

__all__ = ["Records", "conventions_in", "methods_in"]

Record = Mapping[str, Any]


class Records:
    """What has been measured of one set under one convention; a question is answered by the mean over seeds."""

    def __init__(self, records: Sequence[Record]):
        self.all = [record for record in records if record["figures"] is not None]
        self.diverged = [record for record in records if record["figures"] is None]

    def of(self, method: str, n_components: int, share: float) -> list[Record]:
        """The seeds of one cell; the share makes no difference to a dense method."""
        return [
            record
            for record in self.all
            if record["cell"]["method"] == method
            and record["cell"]["n_components"] == n_components
            and (method == DENSE or record["cell"]["share"] == share)
        ]

    def value(self, method: str, n_components: int, share: float, path: str) -> float | None:
        values = [figure_at(record["figures"], path) for record in self.of(method, n_components, share)]
        known = [float(value) for value in values if value is not None]
        return mean(known) if known else None

    def text(self, method: str, n_components: int, share: float, path: str, digits: int = 3) -> str:
        """The mean, with the standard deviation where there are several seeds."""
        values = [figure_at(record["figures"], path) for record in self.of(method, n_components, share)]
        known = [float(value) for value in values if value is not None]
        if not known:
            return "–"
        return short(mean(known), digits) + (f" ± {short(stdev(known), 1)}" if len(known) > 1 else "")

    def cells(self) -> list[tuple[str, int, float]]:
        """(method, dimension, share), each once, by dimension, share and method."""
        keys = {(r["cell"]["method"], r["cell"]["n_components"], r["cell"]["share"]) for r in self.all}
        order = list(METHODS)
        return sorted(keys, key=lambda key: (key[1], key[2], order.index(key[0])))


def conventions_in(measured: Mapping[str, Record]) -> list[str]:
    """Whose conventions have been measured."""
    return sorted({record["cell"]["conventions"] for record in measured.values()})


def methods_in(records: Records) -> list[str]:
    """In the order of the paper."""
    found = {record["cell"]["method"] for record in records.all}
    return [method for method in METHODS if method in found]
