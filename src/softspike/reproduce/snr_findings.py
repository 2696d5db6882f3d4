"""How far the gradient ratios are from the paper's, and whether the methods stand in its order."""

from collections.abc import Sequence

from softspike.reproduce.cell import VARIANTS
from softspike.reproduce.paper import SNR
from softspike.reproduce.rows import Measured, longest, off_by

__all__ = ["snr_findings"]

_PARTS = {"inference": "inference network", "generator": "generator"}
_NEAR = 0.1  # deviations up to this need no explanation


def snr_findings(rows: Sequence[Measured]) -> list[str]:
    """One sentence per part under each whole set of conventions; as published, as in the paper's figure."""
    known = [row for row in longest(rows) if row.good and row.cell.row in SNR]
    said: list[str] = []
    for variant in VARIANTS:
        own = [row for row in known if not row.cell.method.departs or row.cell.variant.name == variant]
        if not any(row.cell.variant.name == variant for row in own):
            continue
        for part, title in _PARTS.items():
            ratios = sorted(_ours(row, part) / _paper(row, part) for row in own)
            near = max(abs(ratio - 1) for ratio in ratios) <= _NEAR
            spans = f"from {off_by(ratios[0], 1)} to {off_by(ratios[-1], 1)} off the paper's"
            why = "" if near else " Why they differ from the paper's is not known."
            said.append(f"{title.capitalize()} ({variant}): the ratios are {spans}.{why} {_orders(own, part)}")
    return said


def _ours(row: Measured, part: str) -> float:
    return row.mean(f"published.{part}") or 0.0


def _paper(row: Measured, part: str) -> float:
    return float(getattr(SNR[row.cell.method.name, row.cell.n_samples], part))


def _orders(rows: Sequence[Measured], part: str) -> str:
    said = []
    for n_samples in sorted({row.cell.n_samples for row in rows}):
        there = [row for row in rows if row.cell.n_samples == n_samples]
        ours, theirs = (sorted(there, key=lambda row: -value(row, part)) for value in (_ours, _paper))
        if len(there) > 1:
            names, papers = (" > ".join(row.cell.method.title for row in order) for order in (ours, theirs))
            verdict = "the paper's order" if names == papers else f"NOT the paper's order, which is {papers}"
            said.append(f"J = {n_samples}: {names}, {verdict}")
    return f"{'; '.join(said)}." if said else ""
