"""The charts of a report: how training went, and what came of it."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

from softspike.report.chart import Chart, Drawing, Series, draw
from softspike.report.record import Record

__all__ = ["TrainingChart", "result_charts", "training_charts"]

# The first share of the steps may leave a linear chart at the top, where the log has at least so many lines.
_SETTLING, _LONG = 0.05, 100


class TrainingChart(NamedTuple):
    """The same curve over steps and over seconds."""

    by_step: Drawing
    by_time: Drawing | None


class _Quantity(NamedTuple):
    key: str  # in metrics.jsonl
    title: str
    unit: str
    note: str
    log: bool = False
    by_method: bool = False  # its methods mean different things by it


_QUANTITIES = (
    _Quantity("total", "Loss", "loss", "What training minimises, of the batch at hand.", by_method=True),
    _Quantity(
        "misfit",
        "Reconstruction error",
        "(x − x̂)²",
        "Mean over the batch; of standardised data 1 is coding nothing.",
        True,
    ),
    _Quantity("kl", "Divergence", "nats", "KL of the posterior from the prior, summed over components.", True),
    _Quantity("active", "Active components", "count", "Mean count in the batch, during training."),
    _Quantity("level", "Threshold level", "λ", "Below it a feature is exactly zero."),
    _Quantity("price", "Price of activity", "nats", "What one more active component is worth."),
)


def training_charts(records: Sequence[Record]) -> list[TrainingChart]:
    """One chart per quantity that any run has logged, a line per run, and the learning rates."""
    charts = [_quantity(records, quantity, shown) for quantity in _QUANTITIES for shown in _sharing(records, quantity)]
    return [chart for chart in [*charts, _rates(records)] if chart is not None]


def result_charts(records: Sequence[Record]) -> list[Drawing]:
    """Rate–distortion, support consistency, calibration, usage."""
    measured = [(number, record) for number, record in enumerate(records) if record.measured]
    builders = (_frontier, _consistency, _calibration, _usage)
    drawings = [draw(builder(measured, len(records) > 1)) for builder in builders]
    return [drawing for drawing in drawings if drawing]


# ── while training ──


def _sharing(records: Sequence[Record], quantity: _Quantity) -> list[list[int]]:
    """Which runs share a chart: all, or those of each method where its methods mean different things by a quantity."""
    methods = dict.fromkeys(str(record.settings.get("method")) for record in records) if quantity.by_method else {}
    of_each = [[n for n, r in enumerate(records) if str(r.settings.get("method")) == method] for method in methods]
    return of_each or [list(range(len(records)))]


def _quantity(records: Sequence[Record], quantity: _Quantity, shown: Sequence[int]) -> TrainingChart | None:
    values = {number: [line.get(quantity.key) for line in records[number].log] for number in shown}
    # A method without a quantity logs it as 0.
    values = {number: ys for number, ys in values.items() if any(_is_number(y) and y for y in ys)}
    known = [y for ys in values.values() for y in ys if _is_number(y)]
    if not known:
        return None
    alone = len(shown) < len(records)
    title = f"{quantity.title} of {records[shown[0]].settings.get('method')}" if alone else quantity.title
    key = f"{quantity.key}-{shown[0]}" if alone else quantity.key
    log = quantity.log and min(known) > 0 and max(known) > 5 * min(known)
    limits, note = (None, quantity.note) if log else _limits(values, quantity.note)
    targets = {record.target_active for record in records}
    asked = targets.pop() if quantity.key == "active" and len(targets) == 1 else None

    def chart(axis: str) -> Chart:
        lines = [
            Series(records[number].name if len(records) > 1 else title, _axis(records[number], axis), ys, number)
            for number, ys in values.items()
        ]
        return Chart(
            f"{key}-{axis}", title, note, _AXES[axis], quantity.unit, lines,
            reference=("asked for", asked) if asked else None, log_y=log, y_range=limits,
        )  # fmt: skip

    return _both(chart)


def _rates(records: Sequence[Record]) -> TrainingChart | None:
    """One line per group of parameters, groups with the same rates together."""

    def chart(axis: str) -> Chart:
        lines = []
        for number, record in enumerate(records):
            groups: dict[tuple[Any, ...], list[str]] = {}
            for key in [key for key in (record.log[0] if record.log else {}) if key.startswith("rate_")]:
                groups.setdefault(tuple(line.get(key) for line in record.log), []).append(key.removeprefix("rate_"))
            for place, (rates, names) in enumerate(groups.items()):
                name = " and ".join(names)
                label = f"{record.name}: {name}" if len(records) > 1 else name
                lines.append(Series(label, _axis(record, axis), rates, number + place * len(records)))
        return Chart(f"rate-{axis}", "Learning rate", "As the schedule set it.", _AXES[axis], "rate", lines)

    return _both(chart)


_AXES = {"step": "step", "seconds": "seconds"}


def _axis(record: Record, axis: str) -> list[float]:
    return [float(line.get(axis, math.nan)) for line in record.log]


def _both(chart: Callable[[str], Chart]) -> TrainingChart | None:
    by_step, by_time = draw(chart("step")), draw(chart("seconds"))
    return TrainingChart(by_step, by_time) if by_step else None


def _limits(values: dict[int, list[Any]], note: str) -> tuple[tuple[float, float] | None, str]:
    """The range of a linear chart: of all that comes after the first steps of long logs, where those would dwarf it."""
    kept = [[y for y in ys if _is_number(y)] for ys in values.values()]
    everything = [y for ys in kept for y in ys]
    later = [y for ys in kept for y in (ys[math.ceil(_SETTLING * len(ys)) :] if len(ys) >= _LONG else ys)]
    low, high = min(later), max(later)
    if max(everything) - min(everything) <= 2 * (high - low) or high == low:
        return None, note
    return (low, high), f"{note} The first steps lie beyond the frame."


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


# ── afterwards ──

_Measured = list[tuple[int, Record]]


def _frontier(measured: _Measured, several: bool) -> Chart:
    lines: list[Series] = []
    for number, record in measured:
        found = record.measured.findings.frontier if record.measured else None
        if found is None:
            continue
        name = record.name if several else "this run"
        lines.append(Series(name, found.active, found.explained, number, marks=True))
        if not several:
            lines.append(Series("OMP, same dictionary", found.active, found.omp, 1))
            lines.append(Series("principal components", found.active, found.pca, 2))
    note = "The trained model with its cut moved: explained variance against the mean number of active components."
    farthest = max((x for line in lines for x in line.x), default=1.0)
    return Chart(
        "frontier", "Rate against distortion", note, "active components", "explained variance", lines,
        x_range=(0, farthest),
    )  # fmt: skip


def _consistency(measured: _Measured, several: bool) -> Chart:
    lines = []
    for number, record in measured:
        assert record.measured is not None
        found = record.measured.findings.consistency
        lines.append(
            Series(record.name if several else "Jaccard index", found.noise, found.jaccard, number, marks=True)
        )
    note = "How much of the support stays when noise is added to the input: 1 is all of it."
    return Chart(
        "consistency", "Support consistency", note, "noise, in standard deviations", "Jaccard index", lines,
        y_range=(0, 1), x_range=(0, 1),
    )  # fmt: skip


def _calibration(measured: _Measured, several: bool) -> Chart:
    lines = []
    for number, record in measured:
        found = record.measured.findings.calibration if record.measured else None
        if found:
            forecast, observed = found.reliability.forecast.tolist(), found.reliability.observed.tolist()
            name = record.name if several else "happened"
            kept = [(x, y) for x, y in zip(forecast, observed, strict=True) if math.isfinite(x)]
            lines.append(Series(name, [x for x, _ in kept], [y for _, y in kept], number, marks=True))
    note = "On inputs drawn from the model itself. On the diagonal a stated 70 % comes true 70 % of the time."
    return Chart(
        "calibration", "Calibration", note, "stated probability", "share that was active", lines,
        diagonal=True, y_range=(0, 1), x_range=(0, 1),
    )  # fmt: skip


def _usage(measured: _Measured, several: bool) -> Chart:
    lines = []
    for number, record in measured:
        assert record.measured is not None
        rate = sorted((100 * float(r) for r in record.measured.findings.rate), reverse=True)
        lines.append(Series(record.name if several else "atoms", list(range(1, len(rate) + 1)), rate, number))
    note = "The share of inputs on which each atom is active, the most used first. A cliff to 0 is dead atoms."
    return Chart("usage", "Usage of the atoms", note, "rank", "% of inputs", lines)
