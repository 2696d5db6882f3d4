"""What a report knows of one run: its settings, its log, its dictionary, and what was measured on data."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from softspike.data import Rows
from softspike.metric import Baselines, Summary
from softspike.report.embed import Dictionary
from softspike.report.findings import Figures, Findings
from softspike.report.pixels import Drawn

__all__ = ["Measured", "Record", "stored_figures"]

_MAY_BE_NONE = ("error", "omp", "own")  # a network has no dictionary to pursue


@dataclass(frozen=True)
class Measured:
    """A trained coder on data."""

    on: str  # which data, in words
    training: bool  # the rows are those it was trained on
    rows: Rows
    findings: Findings
    rebuilt: Callable[[sparse.csr_matrix], np.ndarray]  # codes (n, d) → data (n, D)


@dataclass(frozen=True)
class Record:
    """One run. What is not there is None, and the page says so."""

    name: str
    config: Mapping[str, Any]
    log: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, Any] | None = None  # as training left it
    step: int = 0  # steps behind the dictionary that is shown
    diverged: str = ""  # where and why training failed
    missing: str = ""  # why there was no data to measure on
    dictionary: Dictionary | None = None
    drawn: Drawn | None = None
    measured: Measured | None = None
    target_active: float | None = None
    additive: bool = True  # a reconstruction is the sum of its atoms; not so where the generator is a network

    @property
    def settings(self) -> Mapping[str, Any]:
        """The parameters of the estimator."""
        return self.config.get("estimator") or {}

    @property
    def n_steps(self) -> int:
        return int(self.settings.get("max_steps") or 0)

    @property
    def figures(self) -> Figures | None:
        """The headline: measured for this report, or as training left it."""
        return self.measured.findings.figures if self.measured else stored_figures(self.summary)

    @property
    def seconds(self) -> float | None:
        """How long training took."""
        return seconds_of(self.log, self.summary)


def seconds_of(log: Sequence[Mapping[str, Any]], summary: Mapping[str, Any] | None = None) -> float | None:
    """What a finished run took in all, where its summary says it; else the time of the last line of its log."""
    for said in (summary or {}, log[-1] if log else {}):
        seconds = said.get("seconds")
        if isinstance(seconds, int | float) and math.isfinite(seconds):
            return float(seconds)
    return None


def _is_figure(name: str, value: Any) -> bool:
    """A number, or None for what is not measured of every coder."""
    return isinstance(value, int | float) or (value is None and name in _MAY_BE_NONE)


def stored_figures(summary: Mapping[str, Any] | None) -> Figures | None:
    """The figures of a summary.json, where it holds them."""
    try:
        rivals = dict(summary["baselines"]) if summary else {}
        # Figures that an older version did not write are unknown, not a reason to show none.
        own = {name: summary.get(name, math.nan) for name in Summary._fields} if summary else {}
        known = {name: rivals[name] for name in Baselines._fields if name in rivals}
        if not all(_is_figure(name, value) for name, value in [*own.items(), *known.items()]):
            return None
        return Figures(Summary(**own), Baselines(**known)) if summary and "active" in summary else None
    except (KeyError, TypeError, ValueError):
        return None
