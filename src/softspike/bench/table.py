"""The comparison as rows: ratios within a family, never without what they bought."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from softspike.bench.entry import ONE_MORE, Entry, Quality

__all__ = ["Row", "markdown", "row_of", "verdicts"]

_OURS = {"lasso": "lasso", "omp": "OMP"}  # the row that its family is compared with
_COLUMNS = ("method", "times ours", "spread", "CPU", "signals", "explained variance", "active", "gap", "note")


class Row(NamedTuple):
    components: int
    family: str
    package: str
    name: str
    seconds: list[float]  # per 1,000 signals, one for each round
    cpu_seconds: list[float]  # the same, of all threads together
    signals: int
    quality: Quality
    note: str

    @property
    def label(self) -> str:
        return f"{self.package} {self.name}".strip()

    def json(self) -> dict[str, Any]:
        return {**self._asdict(), "quality": self.quality._asdict()}


def row_of(components: int, entry: Entry, signals: int, quality: Quality) -> Row:
    timings = entry.seconds, entry.cpu_seconds
    return Row(components, entry.family, entry.package, entry.name, *timings, signals, quality, entry.note)


def ratios(row: Row, ours: Row) -> list[float]:
    """How many times as long as ours, round by round."""
    return [a / b for a, b in zip(row.seconds, ours.seconds, strict=True)]


def work(row: Row, ours: Row) -> float:
    """The median of the same in processor time."""
    return median(a / b for a, b in zip(row.cpu_seconds, ours.cpu_seconds, strict=True))


def markdown(rows: Sequence[Row]) -> str:
    """One table for each number of components. Times are over those of our lasso, or of our OMP in its family."""
    parts = []
    for components in sorted({row.components for row in rows}):
        mine = [row for row in rows if row.components == components]
        lines = [f"### {components:,} atoms", "", "| " + " | ".join(_COLUMNS) + " |"]
        lines.append("| --- |" + " ---: |" * 7 + " --- |")
        lines += ["| " + " | ".join(_cells(row, _ours(row, mine))) + " |" for row in mine]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _ours(row: Row, rows: Sequence[Row]) -> Row:
    name = _OURS.get(row.family, "lasso")
    return next(other for other in rows if other.package == "softspike" and other.name == name)


def _cells(row: Row, ours: Row) -> list[str]:
    explained, active, gap = row.quality
    known = [f"{row.signals:,}", f"{explained:.3f}", f"{active:.1f}", "–" if gap is None else f"{gap:.1e}", row.note]
    if not row.seconds:
        return [row.label, "–", "–", "–", *known]
    each = ratios(row, ours)
    spread = f"{min(each):.2f}–{max(each):.2f}"
    return [row.label, f"{median(each):.2f}", spread, f"{work(row, ours):.2f}", *known]


def verdicts(rows: Sequence[Row], gap: float) -> list[str]:
    """For each family and number of components: the fastest peer of at least our accuracy, and who is ahead."""
    said = []
    for components in sorted({row.components for row in rows}):
        mine = [row for row in rows if row.components == components]
        for family, name in _OURS.items():
            ours = next(row for row in mine if row.package == "softspike" and row.name == name)
            rivals = [row for row in mine if row.family == family and row.package != "softspike" and row.seconds]
            fair = [row for row in rivals if row.quality.gap is None or row.quality.gap <= 1.05 * gap]
            if not fair:
                continue
            best = min(fair, key=lambda row: median(ratios(row, ours)))
            said.append(
                f"{components:,} atoms, {family}: ours is {_faster(median(ratios(best, ours)))} the fastest of equal "
                f"accuracy, {best.label}; in processor time, {_faster(work(best, ours))} it{_on_few(best, ours)}"
                f"{_unequal(best, ours, mine)}{_hasty(rivals, fair, best, ours)}."
            )
            for row in mine:
                if row.package == "softspike" and row.family == family and row.name == "FISTA":
                    slower = _faster(median(ratios(best, row)))
                    said.append(
                        f"{components:,} atoms, {family}: our FISTA, {row.note}, is {slower} it{_on_few(row, best)}."
                    )
    return said


def _faster(ratio: float) -> str:
    return f"{ratio:.2f} × as fast as" if ratio >= 1 else f"{1 / ratio:.2f} × slower than"


def _unequal(one: Row, other: Row, rows: Sequence[Row]) -> str:
    """What greedy methods of one count differ in: they have no gap to be equal in."""
    mine, its = (f"{row.quality.explained:.4f}" for row in (other, one))
    if one.quality.gap is not None or mine == its:
        return ""
    said = f"; at the same count it explains {its}, ours {mine}"
    more = [row for row in rows if row.package == "softspike" and row.name == ONE_MORE]
    if more and other.quality.explained < one.quality.explained:
        [larger] = more
        said += f", and with one atom more {larger.quality.explained:.4f}, {_faster(median(ratios(one, larger)))} it"
    return said


def _hasty(rivals: Sequence[Row], fair: Sequence[Row], best: Row, ours: Row) -> str:
    """Rivals that were faster than the fastest of equal accuracy, for they were not as accurate."""
    least = median(ratios(best, ours))
    loose = [row for row in rivals if row not in fair and median(ratios(row, ours)) < least]
    return "".join(f"; {row.label} is faster, at a gap of {row.quality.gap:.1e}" for row in loose)


def _on_few(one: Row, other: Row) -> str:
    """What one must know of a ratio between unequal batches: fewer signals bear more of what is done once for all."""
    if one.signals == other.signals:
        return ""
    return f" ({one.label} on {one.signals:,} signals, {other.label} on {other.signals:,})"
