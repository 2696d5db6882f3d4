"""Line charts as geometry; the template turns it into SVG.

Drawn by hand, not by a plotting library: a page holds about ten small line charts, and as plain SVG they take a few
kilobytes, follow the page's colours in light and dark, print sharply and need no script. A library that draws in the
browser would be larger than the rest of the page, and one that draws here would know nothing of the reader's colours.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Chart", "Drawing", "Series", "draw", "ticks"]

WIDTH, HEIGHT = 320, 216
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 10, 22, 32
_MOST_POINTS = 300
_FAR = 50.0


class Series(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: int = 0  # colour and dash pattern together, so that neither carries the meaning alone
    marks: bool = False  # a dot at every point


class Chart(NamedTuple):
    id: str
    title: str
    note: str  # one sentence on how to read it
    x_label: str
    y_label: str
    series: Sequence[Series]
    reference: tuple[str, float] | None = None  # a horizontal line: its name and value
    diagonal: bool = False  # the line y = x
    log_y: bool = False
    y_range: tuple[float, float] | None = None
    x_range: tuple[float, float] | None = None


class Line(NamedTuple):
    name: str
    style: int
    path: str  # SVG path data
    dots: list[tuple[float, float]]
    points: list[tuple[float, float, str, str]]  # place on the drawing, and x and y in words
    last: str


class Drawing(NamedTuple):
    chart: Chart
    width: int
    height: int
    box: tuple[float, float, float, float]  # left, top, right, bottom of the plotting area
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    lines: list[Line]
    reference: float | None
    diagonal: str


def draw(chart: Chart) -> Drawing | None:
    """The chart's geometry, or None where there is nothing to draw."""
    kept = [(series, _points(series, chart.log_y)) for series in chart.series]
    kept = [(series, points) for series, points in kept if points]
    if not kept:
        return None
    xs = [x for _, points in kept for x, _ in points]
    ys = [y for _, points in kept for _, y in points] + ([chart.reference[1]] if chart.reference else [])
    low, high = chart.y_range or (min(ys), max(ys))
    if chart.reference:
        low, high = min(low, chart.reference[1]), max(high, chart.reference[1])
    left, right = chart.x_range or (min(xs), max(xs))
    across, up = _Axis(left, right, False), _Axis(low, high, chart.log_y)
    box = (_LEFT, _TOP, WIDTH - _RIGHT, HEIGHT - _BOTTOM)

    def place(x: float, y: float) -> tuple[float, float]:
        right, down = across.share(x), 1 - up.share(y)
        return round(box[0] + right * (box[2] - box[0]), 1), round(box[1] + down * (box[3] - box[1]), 1)

    lines = [_line(series, points, place, box) for series, points in kept]
    corners = (place(across.low, across.low), place(across.high, across.high)) if chart.diagonal else ()
    return Drawing(
        chart, WIDTH, HEIGHT, box,
        [(place(x, up.low)[0], number(x)) for x in across.ticks()],
        [(place(across.low, y)[1], number(y)) for y in up.ticks()],
        lines, place(across.low, chart.reference[1])[1] if chart.reference else None,
        _path(corners) if corners else "",
    )  # fmt: skip


def number(value: float) -> str:
    """A short way to write a number: 0.25, 3,000, 1.2e-05."""
    if value == 0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e6:
        text = f"{value:,.4g}" if size < 1000 else f"{value:,.0f}"
        return text
    return f"{value:.2g}"


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from low to high, steps of 1, 2 or 5 times a power of ten."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


class _Axis:
    """Values to shares of a length, those beyond the range below 0 or above 1; a flat range is widened about its line.

    What lies beyond is left to the template to cut off. SVG numbers are single precision, hence the bound: a line to
    fifty frames away is upright.
    """

    def __init__(self, low: float, high: float, log: bool):
        if not high > low:
            spread = abs(low) * 0.1 or 1.0
            low, high = (low / 2, high * 2) if log else (low - spread, high + spread)
        self.low, self.high, self.log = low, high, log

    def share(self, value: float) -> float:
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return min(max((value - self.low) / (self.high - self.low), -_FAR), _FAR)

    def ticks(self) -> list[float]:
        if not self.log:
            return ticks(self.low, self.high)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1,), (1, 3), (1, 2, 5)):
            found = [f * 10.0**p for p in powers for f in factors if self.low <= f * 10.0**p <= self.high]
            if len(found) >= 3:
                return found
        return [float(f"{value:.2g}") for value in (self.low, math.sqrt(self.low * self.high), self.high)]


def _points(series: Series, log: bool) -> list[tuple[float, float]]:
    """Finite points only, thinned evenly to what a small chart can show; the last one stays."""
    points = [
        (float(x), float(y))
        for x, y in zip(series.x, series.y, strict=True)
        if y is not None and math.isfinite(y) and math.isfinite(x) and (y > 0 or not log)
    ]
    stride = math.ceil(len(points) / _MOST_POINTS)
    return points if stride <= 1 else [*points[:-1:stride], points[-1]]


def _line(
    series: Series,
    points: list[tuple[float, float]],
    place: Callable[[float, float], tuple[float, float]],
    box: tuple[float, float, float, float],
) -> Line:
    placed = [place(x, y) for x, y in points]
    words = [(*at, number(x), number(y)) for at, (x, y) in zip(placed, points, strict=True)]
    alone = series.marks or len(points) == 1
    dots = [(x, y) for x, y in placed if alone and box[0] <= x <= box[2] and box[1] <= y <= box[3]]
    return Line(series.name, series.style, _path(placed), dots, words, number(points[-1][1]))


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
