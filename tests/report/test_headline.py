"""The figures at the top, and what they are judged by."""

import pytest

from softspike.metric import Baselines, Summary
from softspike.report.comparison import compare
from softspike.report.headline import headlines
from softspike.report.record import Record, stored_figures

# explained variance, active, target → as shown
CASES = [
    (0.9171, 26.4, 25.6, "0.917", "3.1\u00a0% over"),
    (-0.0004, 12.8, 25.6, "0.000", "50.0\u00a0% under"),  # nothing has no sign
    (-0.25, 25.6, 25.6, "-0.250", "exactly met"),
]


@pytest.mark.parametrize(("explained", "active", "target", "shown", "miss"), CASES)
def test_figures_stand_beside_what_judges_them(explained, active, target, shown, miss):
    summary = Summary(1000, explained, active, active / 256, 0, 256, 12.3, 45.6)._asdict()
    rivals = Baselines(500, 0.6, 0.9, explained)._asdict()
    record = Record("run", {}, summary={**summary, "baselines": rivals}, target_active=target)
    first, second, third, fourth = headlines(record)
    assert first.value == shown
    assert f"this run reaches {shown}" in first.judge
    assert [bar.text for bar in first.bars] == [shown, "0.900", "0.600", "0"]  # OMP, principal components, z = 0
    assert miss in second.judge
    assert third.value == "0 of 256"
    assert fourth.value == "none"
    assert "no data was given" in fourth.judge


def test_stored_figures_of_a_network_have_no_pursuit():
    stored = {**Summary(10, 0.5, 2.0, 0.1, 0, 20, 1.0, 2.0)._asdict(), "baselines": Baselines(10, 0.4, None)._asdict()}
    found = stored_figures(stored)
    assert found.baselines == Baselines(10, 0.4, None)
    assert stored_figures({**stored, "active": None}) is None


def run(name, explained, active, dead, on="training rows", fingerprint="100x8:ab"):
    summary = {"on": on, **Summary(1000, explained, active, 0.1, dead, 256, 1.0, 2.0)._asdict()}
    data = {"name": "x.npy", "fingerprint": fingerprint}
    rivals = Baselines(500, 0.6, 0.9, 0.5)._asdict()
    return Record(name, {"data": data}, summary={**summary, "baselines": rivals}, target_active=25.6)


# two runs → the row in which the first is marked as the best, and those in which none is
BEST = {
    "better": (run("a", 0.9, 25.6, 3), run("b", 0.8, 25.9, 3), ["Explained variance", "Active atoms"]),
    "the same to three decimals": (
        run("a", 0.9003, 25.6, 0),
        run("b", 0.9001, 25.9, 2),
        ["Active atoms", "Dead atoms"],
    ),
    "other counts": (run("a", 0.9, 25.6, 0), run("b", 0.8, 12.0, 2), ["Active atoms", "Dead atoms"]),
    "other data": (run("a", 0.9, 25.6, 0), run("b", 0.8, 25.9, 2, fingerprint="90x8:cd"), []),
    "other rows": (run("a", 0.9, 25.6, 0), run("b", 0.8, 25.9, 2, on="unseen patches"), []),
}


@pytest.mark.parametrize("case", BEST)
def test_the_best_is_marked_only_where_that_can_be_seen_and_is_fair(case):
    first, second, marked = BEST[case]
    found = compare([first, second])
    assert [row.title for row in found.rows if row.cells[0].best] == marked
    assert not any(row.cells[1].best for row in found.rows)
    assert ("measured on different data" in found.note) == (case in ("other data", "other rows"))
