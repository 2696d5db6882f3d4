"""What a reader should be warned of, in words."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from softspike.report.findings import Findings
from softspike.report.record import Record

__all__ = ["Remark", "remarks"]

# Beyond these a figure is remarked on.
_DEAD, _MISS, _DOUBT, _COPIES, _FEW = 0.05, 0.05, 0.1, 0.95, 500
_COVERAGE = (0.85, 0.95)


class Remark(NamedTuple):
    warning: bool  # otherwise a note
    text: str


def remarks(record: Record) -> list[Remark]:
    """Warnings first."""
    found = [*_training(record), *_figures(record)]
    if record.measured:
        found += _measured(record, record.measured.findings)
    return sorted(found, key=lambda remark: not remark.warning)


def _training(record: Record) -> Iterator[Remark]:
    shown = f"what is shown is step {record.step:,}" if record.dictionary else "there is no dictionary to show"
    if record.diverged:
        yield Remark(True, f"Diverged: {record.diverged}; {shown}.")
    elif record.step < record.n_steps:
        yield Remark(True, f"Unfinished: {record.step:,} of {record.n_steps:,} steps are done; {shown}.")
    if (record.dictionary or record.missing) and not record.measured:
        why = record.missing or "no data was given"
        yield Remark(False, f"Not measured: {why}. Usage, inputs and calibration are missing; add --data DATA.")


def _figures(record: Record) -> Iterator[Remark]:
    if record.figures is None:
        return
    summary, rivals = record.figures
    share = summary.dead / summary.n_components
    if share > _DEAD:
        yield Remark(
            True, f"Dead atoms: {summary.dead} of {summary.n_components} ({100 * share:.0f} %) were never active."
        )
    target, dense = record.target_active, summary.active >= summary.n_components
    if target and not dense and abs(summary.active / target - 1) > _MISS:
        yield Remark(True, f"Sparsity missed: {summary.active:.1f} active where {target:.1f} were asked for.")
    if summary.explained_variance < 0:
        yield Remark(True, "These codes rebuild the data worse than its mean does.")
    elif summary.explained_variance < rivals.pca and not dense:
        yield Remark(True, "As many principal components explain more than these codes do.")
    if summary.n_samples < _FEW:
        yield Remark(False, f"Only {summary.n_samples} inputs were measured: figures are rough.")


def _measured(record: Record, findings: Findings) -> Iterator[Remark]:
    if record.measured and record.measured.training:
        yield Remark(False, "Measured on rows it was trained on; on unseen data the figures may be worse.")
    copies = int((findings.neighbours.cosine[:, 0].abs() > _COPIES).sum()) if findings.neighbours.cosine.numel() else 0
    if copies:
        yield Remark(False, f"{copies} atoms are nearly the same as another (|cos| > {_COPIES}).")
    calibration = findings.calibration
    if calibration is None:
        return
    if calibration.error_in_doubt > _DOUBT:
        yield Remark(
            True,
            "Probabilities between 1 % and 99 % are "
            f"{calibration.error_in_doubt:.2f} off on average: rank features by them, do not read them as chances.",
        )
    low, high = _COVERAGE
    if not (math.isnan(calibration.coverage) or low <= calibration.coverage <= high):
        yield Remark(True, f"90 % intervals cover {100 * calibration.coverage:.0f} % on inputs drawn from the model.")
