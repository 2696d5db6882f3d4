"""The figures that matter, each with what it is to be judged by."""

import math
from collections.abc import Callable
from typing import NamedTuple

from softspike.report.record import Record

__all__ = ["Bar", "Headline", "headlines"]


_WHY_NONE = (
    "Measured on inputs that the model draws itself, so that their codes are known; of the methods only hard-gaussian "
    "can, with a dictionary."
)


class Bar(NamedTuple):
    """One line of a small comparison."""

    name: str
    value: float
    text: str
    own: bool = False


class Headline(NamedTuple):
    id: str
    title: str
    value: str
    judge: str  # what to compare it with, in words
    bars: tuple[Bar, ...] = ()
    score: float | None = None  # larger is better; None where it cannot be ranked


def headlines(record: Record) -> list[Headline]:
    """In the order of their weight; empty for a run without any figures."""
    if record.figures is None:
        return []
    builders: tuple[Callable[[Record], Headline], ...] = (_explained, _active, _dead, _calibration)
    return [builder(record) for builder in builders]


def _explained(record: Record) -> Headline:
    figures = record.figures
    assert figures is not None
    summary, rivals = figures
    own = summary.explained_variance
    bars = [Bar("this run", own, _three(own), own=True)]
    if rivals.omp is not None:
        bars.append(Bar("OMP, same dictionary", rivals.omp, f"{rivals.omp:.3f}"))
    bars.append(Bar(f"{max(round(summary.active), 1)} principal components", rivals.pca, f"{rivals.pca:.3f}"))
    bars.append(Bar("coding nothing (z = 0)", 0.0, "0"))
    here = "" if rivals.own is None else f", where this run reaches {_three(rivals.own)}"
    judge = f"The others with the same mean count, on {rivals.n_samples:,} of {summary.n_samples:,} inputs{here}."
    return Headline("explained", "Explained variance", _three(own), judge, tuple(bars), own)


def _active(record: Record) -> Headline:
    figures, target = record.figures, record.target_active
    assert figures is not None
    active, d = figures.summary.active, figures.summary.n_components
    if target is None or active >= d:
        judge, score = "The codes of this method are dense: no target applies.", None
    else:
        miss = active / target - 1
        off = "exactly met" if abs(miss) < 5e-4 else f"{abs(miss) * 100:.1f}\u00a0% {'over' if miss > 0 else 'under'}"
        judge = f"Asked for {target:.1f}: {off}."
        score = -abs(miss)
    return Headline("active", "Active atoms", f"{active:.1f} of {d}", judge, score=score)


def _dead(record: Record) -> Headline:
    figures = record.figures
    assert figures is not None
    dead, d = figures.summary.dead, figures.summary.n_components
    judge = f"Never active on {figures.summary.n_samples:,} inputs; a healthy dictionary has next to none."
    return Headline("dead", "Dead atoms", f"{dead} of {d}", judge, score=-dead / d)


def _calibration(record: Record) -> Headline:
    found = record.measured.findings.calibration if record.measured else None
    title = "Calibration error"
    if found is None:
        why = _WHY_NONE if record.measured else f"Not measured: {record.missing or 'no data was given'}."
        return Headline("calibration", title, "none", why)
    doubt = "" if math.isnan(found.error_in_doubt) else f" {found.error_in_doubt:.3f} where in doubt (1–99\u00a0%)."
    cover = "" if math.isnan(found.coverage) else f" 90\u00a0% intervals cover {100 * found.coverage:.0f}\u00a0%."
    judge = (
        f"Stated probability against what happened, on {found.n_samples:,} inputs drawn from the model; 0 is perfect."
    )
    return Headline("calibration", title, f"{found.error:.3f}", judge + doubt + cover, score=-found.error)


def _three(value: float) -> str:
    """Three decimals; what rounds to nothing has no sign."""
    return f"{round(value, 3) + 0.0:.3f}"
