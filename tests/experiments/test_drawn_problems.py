"""Problems drawn at random: they are what they say, and are measured once."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.intervals import main, summary
from experiments.recovery_problems import drawn, problem_named


@pytest.mark.parametrize("number", range(40))
def test_a_problem_is_what_it_says(number: int) -> None:
    """The same for the same number; sizes, noise and rates as asked, and more of the rows active than not at all."""
    setting = drawn(number)
    assert setting == drawn(number)
    assert 8 <= setting.n_features <= 64
    assert setting.n_features <= setting.n_sources <= 3 * setting.n_features
    assert 2 <= setting.n_active <= setting.n_features / 4 + 1
    assert 1000 <= setting.n_train <= 16_000
    problem = problem_named(f"drawn-{number}")
    sample = problem.sample(2000, number, setting.noise)
    assert sample.x.shape == (2000, setting.n_features)
    assert float((sample.codes != 0).sum(1).double().mean()) == pytest.approx(setting.n_active, rel=0.1)
    assert bool((sample.codes >= 0).all()) == setting.positive
    if setting.values == "never small":
        assert float(sample.codes[sample.codes != 0].abs().min()) >= 0.5


def test_they_are_measured_once(tmp_path: Path) -> None:
    command = ["--first", "98", "--problems", "1", "--steps", "5", "--out", str(tmp_path)]  # one of the smallest
    main(command)
    page = json.loads((tmp_path / "intervals.json").read_text())
    assert [row["number"] for row in page["problems"]] == [98]
    for path in (tmp_path / "cells").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "coverage_active": 0.9}))
    main(command)
    assert json.loads((tmp_path / "intervals.json").read_text())["summary"]["all"]["within"] == 1


def test_a_summary_counts() -> None:
    rows = [
        {"coverage_active": covered, "ece": 0.01, "atoms_share": found, "noise": noise}
        for covered, found, noise in [(0.8, 0.5, 0.0), (0.85, 1.0, 0.1), (0.95, 1.0, 0.1), (0.97, 0.95, 0.0)]
    ]
    said = summary(rows)
    assert {k: v["problems"] for k, v in said.items()} == {"all": 4, "learned": 3, "with noise": 2, "without noise": 2}
    assert [said["all"][key] for key in ("within", "below", "above")] == [2, 1, 1]
    assert said["with noise"]["within"] == 2
