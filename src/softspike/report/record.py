"""What a report knows of one run: its settings, its log, its dictionary, and what was measured on data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softspike.data import Rows
from softspike.metric import Baselines, Summary
from softspike.report.embed import Dictionary
from softspike.report.findings import Figures, Findings
from softspike.report.pixels import Drawn

__all__ = ["Measured", "Record", "stored_figures"]


@dataclass(frozen=True)
class Measured:
    """A trained coder on data."""

    on: str  # which data, in words
    training: bool  # the rows are those it was trained on
    rows: Rows
    findings: Findings


@dataclass(frozen=True)
class Record:
    """One run. What is not there is None, and the page says so."""

    name: str
    config: Mapping[str, Any]
    log: Sequence[Mapping[str, Any]] = ()
    summary: Mapping[str, Any] | None = None  # as training left it
    step: int = 0  # steps behind the dictionary that is shown
    diverged: str = ""  # where and why training failed
    dictionary: Dictionary | None = None
    drawn: Drawn | None = None
    measured: Measured | None = None
    target_active: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

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
        return float(self.log[-1]["seconds"]) if self.log and "seconds" in self.log[-1] else None


def stored_figures(summary: Mapping[str, Any] | None) -> Figures | None:
    """The figures of a summary.json, where it holds them."""
    try:
        rivals = dict(summary["baselines"]) if summary else {}
        own = {name: summary[name] for name in Summary._fields} if summary else {}
        known = {name: rivals[name] for name in Baselines._fields if name in rivals}
        return Figures(Summary(**own), Baselines(**known)) if summary else None
    except (KeyError, TypeError):
        return None
