"""The geometry of charts: points are where their values say, ticks are round, odd data draws or draws nothing."""

import math
import re
from itertools import pairwise

import pytest

from softspike.report.chart import Chart, Series, draw, number, ticks
from softspike.report.curves import training_charts
from softspike.report.record import Record


def chart(series, **options):
    return Chart("id", "title", "note", "x", "y", series, **options)


def test_points_are_placed_in_proportion():
    drawing = draw(chart([Series("a", [0, 5, 10], [0.0, 1.0, 4.0])]))
    left, top, right, bottom = drawing.box
    found = [tuple(map(float, point.split())) for point in drawing.lines[0].path[1:].split("L")]
    expected = [(left, bottom), ((left + right) / 2, bottom - (bottom - top) / 4), (right, top)]
    for (x, y), (at_x, at_y) in zip(found, expected, strict=True):
        assert abs(x - at_x) <= 0.06
        assert abs(y - at_y) <= 0.06


def test_equal_factors_are_equal_heights_on_a_logarithmic_axis():
    drawing = draw(chart([Series("a", [0, 1, 2], [0.01, 0.1, 1.0])], log_y=True))
    heights = [y for _, y, _, _ in drawing.lines[0].points]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.98, 0.981), (1e-9, 3e-9), (0, 12345), (-1e6, -9e5)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 11
    assert all(low - 1e-12 <= tick <= high + 1e-12 for tick in found)
    gaps = [b - a for a, b in pairwise(found)]
    mantissa = f"{gaps[0]:.3e}"[0]
    assert mantissa in "125"
    assert gaps == pytest.approx([gaps[0]] * len(gaps), rel=1e-3)


ODD = {
    "nothing": [],
    "an empty series": [Series("a", [], [])],
    "only NaN": [Series("a", [1, 2], [math.nan, None])],
    "not positive on a logarithmic axis": [Series("a", [1, 2], [0.0, -1.0])],
}


@pytest.mark.parametrize("case", ODD)
def test_nothing_to_draw(case):
    assert draw(chart(ODD[case], log_y=True)) is None


DRAWN = {
    "one point": [Series("a", [3], [5.0])],
    "a constant": [Series("a", [1, 2, 3], [0.0, 0.0, 0.0])],
    "gaps": [Series("a", [1, 2, 3, 4], [1.0, None, math.inf, 2.0])],
    "huge": [Series("a", [1, 2], [1e300, -1e300])],
}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("case", DRAWN)
def test_odd_data_is_drawn_inside_the_frame(case, log):
    drawing = draw(chart(DRAWN[case], log_y=log))
    if drawing is None:
        assert log
        return
    left, top, right, bottom = drawing.box
    assert "nan" not in drawing.lines[0].path
    for x, y, _, _ in drawing.lines[0].points:
        assert left <= x <= right
        assert top <= y <= bottom
    if len(drawing.lines[0].points) == 1:
        assert drawing.lines[0].dots  # a path of one point cannot be seen


def test_long_series_are_thinned_and_keep_their_end():
    drawing = draw(chart([Series("a", range(100_000), [float(i % 7) for i in range(99_999)] + [123.0])]))
    assert len(drawing.lines[0].points) <= 301
    assert drawing.lines[0].last == "123"


def test_beyond_the_range_is_cut_off_not_drawn_along_the_frame():
    drawing = draw(chart([Series("a", [0, 1, 2], [50.0, 1.0, 0.0], marks=True)], y_range=(0, 2)))
    _, top, _, bottom = drawing.box
    line = drawing.lines[0]
    assert line.points[0][1] == pytest.approx(bottom - 25 * (bottom - top), abs=0.1)
    assert [y for _, y in line.dots] == pytest.approx([(top + bottom) / 2, bottom], abs=0.1)


def test_a_value_of_any_size_is_a_number_that_svg_can_hold():
    line = draw(chart([Series("a", [0, 1, 2], [1e300, -1e300, 0.0])], y_range=(0, 2))).lines[0]
    assert all(abs(y) < 1e5 for _, y, _, _ in line.points)


# a log of so many lines, its loss falling from 68.6 → what may lie beyond the frame
LOGS = {"short": (4, False), "of a thousand": (1000, True)}


@pytest.mark.parametrize("case", LOGS)
def test_only_the_first_steps_of_a_long_log_lie_beyond_the_frame(case):
    n, beyond = LOGS[case]
    loss = [68.6, *(58.0 - 2.0 * i / n for i in range(1, n))]
    log = [{"step": 50 * i, "seconds": i, "total": y, "active": 6.0 + i / n} for i, y in enumerate(loss)]
    record = Record("run", {}, log, target_active=8.0)
    total, active = (drawn.by_step for drawn in training_charts([record]))
    _, top, _, bottom = total.box
    heights = [y for _, y, _, _ in total.lines[0].points]
    assert (heights[0] < top) == beyond == ("The first steps lie beyond the frame." in total.chart.note)
    assert all(top <= y <= bottom for y in heights[max(1, len(heights) // 10) :])
    assert len(set(heights)) > 2  # nothing is flat that was not
    # the line that was asked for has its own place, not the top of the curve
    assert top <= active.reference < min(y for _, y, _, _ in active.lines[0].points) - 10


def test_unlike_losses_have_charts_of_their_own_and_what_a_method_lacks_has_no_line():
    def run(name, method, **values):
        log = [{"step": i, "seconds": i, "misfit": 0.5 / (i + 1), **values} for i in range(3)]
        return Record(name, {"estimator": {"method": method}}, log)

    ours = [run("a", "hard-gaussian", total=80.0, kl=20.0), run("b", "hard-gaussian", total=70.0, kl=10.0)]
    other = run("c", "fista", total=300.0, kl=0.0)
    alike = {drawn.by_step.chart.id: drawn.by_step for drawn in training_charts(ours)}
    assert alike.keys() == {"total-step", "misfit-step", "kl-step"}
    mixed = {drawn.by_step.chart.title: drawn.by_step for drawn in training_charts([ours[0], other, ours[1]])}
    names = {title: [line.name for line in drawing.lines] for title, drawing in mixed.items()}
    assert names == {
        "Loss of hard-gaussian": ["a", "b"], "Loss of fista": ["c"], "Reconstruction error": ["a", "c", "b"],
        "Divergence": ["a", "b"],
    }  # fmt: skip
    assert [line.style for line in mixed["Loss of hard-gaussian"].lines] == [0, 2]  # each run looks the same everywhere
    assert len({drawing.chart.id for drawing in mixed.values()}) == 4


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.25, "0.25"), (3000, "3,000"), (1.23456e-5, "1.2e-05"), (-0.5, "-0.5"), (26.34775, "26.35")],
)
def test_numbers(value, text):
    assert number(value) == text
    assert not re.search(r"\s", text)
