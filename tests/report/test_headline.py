"""The figures at the top, and what they are judged by."""

import pytest

from softspike.metric import Baselines, Summary
from softspike.report.headline import headlines
from softspike.report.record import Record

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
