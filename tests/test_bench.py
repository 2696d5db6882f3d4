"""`softspike bench`, through the command line: every row with what its time buys."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from command import softspike

from softspike.bench.entry import Entry, Quality
from softspike.bench.ours import encoders
from softspike.bench.place import targets_of
from softspike.bench.problem import make_problem
from softspike.bench.table import Row, verdicts
from softspike.bench.timing import signals_within


def test_quick_bench(tmp_path: Path) -> None:
    """Three timings of every row, the count and the gap that were asked for, and z = 0 explaining nothing."""
    result = softspike("bench", "--quick", "--seconds", "20", "-o", tmp_path / "made" / "speed")
    assert result.code == 0, result.err
    content = json.loads((tmp_path / "made" / "speed.json").read_text())
    rows = {f"{row['package']} {row['name']}".strip(): row for row in content["rows"]}
    page = (tmp_path / "made" / "speed.md").read_text()
    for label, row in rows.items():
        assert f"| {label} |" in page
        assert len(row["seconds"]) == (0 if label == "z = 0" else 3)
        assert all(second > 0 for second in row["seconds"])
        assert row["signals"] == 1000  # there is time for all of them, also on a busy machine
    nothing = rows["z = 0"]["quality"]
    assert nothing["active"] == 0
    assert nothing["explained"] <= 0
    assert nothing["gap"] > 0.1
    for label in ("softspike lasso", "softspike lasso, fine", "softspike FISTA", "scikit-learn lasso_lars"):
        assert rows[label]["quality"]["gap"] <= 1e-3
        assert 4 < rows[label]["quality"]["active"] < 12
        assert rows[label]["quality"]["explained"] > 0.2
    for label in ("softspike OMP", "scikit-learn omp"):
        assert rows[label]["quality"]["active"] == pytest.approx(8, abs=0.1)
    assert rows["softspike OMP"]["quality"]["explained"] == pytest.approx(
        rows["scikit-learn omp"]["quality"]["explained"], abs=0.002
    )
    for kind, least in {"default model": 0.3, "linear encoder": 0.3, "MLP encoder": 0.02}.items():
        for draws in (1, 20):
            quality = rows[f"softspike transform, {kind}, J = {draws}"]["quality"]
            assert quality["explained"] > least
            assert 4 < quality["active"] < 13
    assert "| z = 0 |" in result.out


def test_encoders_are_where_their_peers_are(monkeypatch):
    """On a CPU, also where there is a GPU: trained, coding, and drawing."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    problem = make_problem(n_components=16, n_signals=20, n_active=3, n_learning=300)
    for entry in encoders(problem, n_steps=2, n_draws=2):
        assert entry.code(20).shape == (20, 16)


ABSENT = """
import sys, torch
torch.set_num_threads(1)
sys.modules["celer"] = None  # as if it were not installed
from softspike.cli import app
from softspike.model import VariationalCoder
VariationalCoder._calibrate_by_simulation = lambda *given: None  # takes long, and nobody asks for probabilities
app(prog_name="softspike")
"""


def test_absent_peers_are_left_out_with_a_note(tmp_path: Path) -> None:
    """One that is not there and one whose compiled part does not load: both are named with the reason, on the screen
    and on the page, and the rows of the others are there."""
    (tmp_path / "spams.py").write_text("raise ImportError('libopenblas.so.0: cannot open shared object file')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    short = ["--signals", "50", "--rounds", "2", "--steps", "2", "--seconds", "0.01"]
    words = ["bench", "--quick", *short, "--peers", "celer,SPAMS,scikit-learn", "-o", str(tmp_path / "speed")]
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, *words],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "speed.md").read_text()
    for text in (done.stdout, page):
        assert "Left out: celer, not installed (pip install 'softspike[bench]')." in text
        assert "Left out: SPAMS, its import failed (ImportError: libopenblas.so.0: cannot open" in text
        assert "skglm" not in text  # not asked for
    packages = {row["package"] for row in json.loads((tmp_path / "speed.json").read_text())["rows"]}
    assert packages == {"", "softspike", "scikit-learn"}


def test_a_single_timing_is_refused() -> None:
    result = softspike("bench", "--quick", "--rounds", "1")
    assert result.code == 2
    assert "at least 2 rounds" in result.err
    result = softspike("bench", "--quick", "--peers", "SPAMS,nobody")
    assert result.code == 2
    assert "'nobody' was asked for, expected peers among scikit-learn, SPAMS, celer, skglm" in result.err
    result = softspike("bench", "--components", "26")
    assert result.code == 2
    assert "expected at least 1 signal and more than 26 components" in result.err
    for wrong in ("nan", "-1", "inf"):
        result = softspike("bench", "--quick", "--seconds", wrong)
        assert result.code == 2
        assert "expected more than 0 of each" in result.err
    result = softspike("bench", "--components", "many")
    assert result.code == 2
    assert "'many' was given, expected whole numbers with commas" in result.err


def test_results_have_a_place_before_anything_is_measured(tmp_path: Path) -> None:
    """A point in a name is part of it; what is no result of a bench stays as it is; a folder that cannot be made ends
    it at once."""
    assert targets_of(tmp_path / "res.v1") == (tmp_path / "res.v1.md", tmp_path / "res.v1.json")
    assert targets_of(tmp_path / "new" / "speed.json") == (tmp_path / "new/speed.md", tmp_path / "new/speed.json")
    (tmp_path / "config.json").write_text('{"estimator": {}}')
    (tmp_path / "file").touch()
    (tmp_path / "folder.md").mkdir()
    for out, code, said in [
        ("config", 2, "config.json is there and holds no results of a bench"),
        ("folder", 2, "folder.md is a folder, expected a file for the results"),
        ("file/speed", 1, "file"),
    ]:
        result = softspike("bench", "--quick", "-o", tmp_path / out)
        assert (result.code, result.out) == (code, "")
        assert said in result.err
    assert (tmp_path / "config.json").read_text() == '{"estimator": {}}'
    assert softspike("bench", "--quick", "--rounds", "1", "-o", tmp_path / "unmade" / "speed").code == 2
    assert not (tmp_path / "unmade").exists()


def made(family: str, package: str, name: str, seconds: list[float], gap: float | None, signals: int = 10) -> Row:
    return Row(64, family, package, name, seconds, seconds, signals, Quality(0.5, 8.0, gap), "")


def test_the_verdict_compares_equal_accuracy_only() -> None:
    """A faster but looser peer does not count; a slower verdict says by how much."""
    rows = [
        made("lasso", "softspike", "lasso", [1.0, 2.0, 1.0], 1e-3),
        made("lasso", "softspike", "FISTA", [12.0, 24.0, 11.6], 1e-3),
        made("lasso", "hasty", "Lasso", [0.1, 0.1, 0.1], 1e-1),
        made("lasso", "exact", "LARS", [3.0, 6.0, 2.9], 1e-7),
        made("omp", "softspike", "OMP", [1.0, 1.0, 1.0], None),
        made("omp", "quick", "OMP", [0.5, 0.5, 0.4], None, signals=9),
    ]
    lasso, fista, omp = verdicts(rows, 1e-3)
    assert "our FISTA" in fista
    assert "4.00 × slower than it" in fista
    assert "ours is 3.00 × as fast as the fastest of equal accuracy, exact LARS" in lasso
    assert "ours is 2.00 × slower than the fastest of equal accuracy, quick OMP" in omp
    assert omp.endswith("(quick OMP on 9 signals, softspike OMP on 10).")
    assert "signals" not in lasso
    assert lasso.endswith("; hasty Lasso is faster, at a gap of 1.0e-01.")
    rows[-1] = rows[-1]._replace(quality=Quality(0.51, 8.0, None))
    assert verdicts(rows, 1e-3)[-1].endswith("; at the same count it explains 0.5100, ours 0.5000.")
    rows.append(
        made("omp", "softspike", "OMP, one atom more", [0.25, 0.25, 0.2], None)._replace(quality=Quality(0.52, 9, None))
    )
    said = verdicts(rows, 1e-3)[-1]
    assert said.endswith("it explains 0.5100, ours 0.5000, and with one atom more 0.5200, 2.00 × as fast as it.")


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [(1e-5, 1e-5, 1000), (4e-3, 4e-3, 50), (1.2e-3, 1e-5, 1000), (1.2e-3, 1.2e-3, 83), (1.2e-3, 4e-4, 250)],
    ids=["all", "slow", "compiled for many", "some", "compiled, and some"],
)
def test_as_many_signals_are_timed_as_fit(monkeypatch, slow, fast, expected):
    """A method of `slow` seconds a signal for up to 50 of them and `fast` for more, in a tenth of a second; to 10 %."""
    clock = [0.0]

    def code(n):
        clock[0] += n * (slow if n <= 50 else fast)
        return np.zeros((n, 2), np.float32)

    monkeypatch.setattr("softspike.bench.timing.time.process_time", lambda: clock[0])
    entry = Entry("lasso", "softspike", "made up", code, "")
    assert signals_within(entry, 1000, 0.1) == pytest.approx(expected, rel=0.1)
