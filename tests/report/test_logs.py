"""What training writes down: the same numbers in every place, also after an interruption."""

import csv
import json
import sys

import numpy as np
import pytest
from command import softspike
from small import QUICK, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows
from softspike.methods import METHODS
from softspike.report.logs import Log, check_log, metrics_of
from softspike.run import RunFolder
from softspike.train import Interrupted

WORDS = ["train", "x.npy", "-o", "run", "--steps", 110, "--components", 24, "--active", 3, "--batch", 32]


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", small_data())
    return tmp_path


def lines_of(run):
    return [json.loads(line, parse_constant=pytest.fail) for line in (run / "metrics.jsonl").read_text().splitlines()]


def scalars_of(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    scalars = {tag: {e.step: e.value for e in events.Scalars(tag)} for tag in events.Tags()["scalars"]}
    return scalars, events.Tags()["images"]


def test_csv_and_tensorboard_hold_the_numbers_of_the_run(folder):
    pytest.importorskip("tensorboard")
    outcome = softspike(*WORDS, "--log", "csv", "--log", "tensorboard", "--log", "csv", folder=folder)
    assert outcome.code == 0, outcome.err
    lines = lines_of(folder / "run")
    assert [line["step"] for line in lines] == [50, 100, 110]
    with open(folder / "run/metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(value) for name, value in row.items()} for row in rows] == lines
    scalars, images = scalars_of(folder / "run")
    assert images == ["dictionary"]
    named = {
        "total": "loss/total", "misfit": "loss/misfit", "kl": "loss/kl", "active": "code/active",
        "level": "threshold/level", "rate_inference": "rate/inference",
    }  # fmt: skip
    for name, tag in named.items():
        assert scalars[tag] == pytest.approx({line["step"]: line[name] for line in lines}, rel=1e-6)


def test_a_resumed_run_has_every_step_once(folder):
    words = [*WORDS, "--log", "csv", "--checkpoint-every", 60]
    assert softspike(*words, folder=folder).code == 0
    run = RunFolder(folder / "run")
    run.checkpoints()[0].unlink()  # step 110: as if it had been stopped after 60
    (folder / "run/model.safetensors").unlink()
    assert softspike("train", "x.npy", "-o", "run", "--resume", "--log", "csv", folder=folder).code == 0
    lines = lines_of(folder / "run")
    assert [line["step"] for line in lines] == [50, 100, 110]
    with open(folder / "run/metrics.csv", newline="") as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == [50, 100, 110]
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)  # the clock goes on


class Kept:
    def __init__(self):
        self.lines = []

    def logged(self, progress):
        self.lines.append(metrics_of(progress, 1.0))

    def saved(self, progress): ...


@pytest.mark.parametrize("method", METHODS)
def test_every_method_logs_finite_numbers(method):
    kept = Kept()
    SparseCoder(**QUICK, method=method, max_steps=3).fit_rows(ArrayRows(small_data()), observers=[kept])
    (line,) = kept.lines
    assert {"step", "total", "misfit", "kl", "active", "active_share", "rate_generator", "seconds"} <= line.keys()
    assert all(value is None or np.isfinite(value) for value in line.values())
    assert line["active_share"] == pytest.approx(line["active"] / 24)


def test_gauges_are_the_models_own():
    kept, coder = Kept(), SparseCoder(**QUICK, max_steps=3)
    coder.fit_rows(ArrayRows(small_data()), observers=[kept])
    assert kept.lines[0]["level"] == pytest.approx(float(coder.coder_.threshold.level.value.detach()))


def test_unknown_logs_are_refused_before_anything_is_written(folder):
    outcome = softspike(*WORDS, "--log", "wandb", folder=folder)
    assert outcome.code == 2
    assert "--log is 'wandb', expected one of: csv, tensorboard" in outcome.sentence
    assert not (folder / "run").exists()


def test_a_missing_tensorboard_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"needs the package tensorboard.*pip install 'softspike\[tensorboard\]'"):
        check_log("tensorboard")


def test_stopping_saves_the_step_at_hand():
    """And a run that goes on from there logs what an undisturbed one does."""
    saved, asked = {}, iter([False] * 6 + [True])
    coder = SparseCoder(**QUICK, max_steps=20)
    with pytest.raises(Interrupted) as stopped:
        coder.fit_rows(ArrayRows(small_data()), on_checkpoint=saved.__setitem__, stop=lambda: next(asked))
    assert stopped.value.step == 7
    assert list(saved) == [7]


def test_the_clock_goes_on_from_where_it_was():
    lines = []
    log = Log(lines.append, seconds=1000.0)
    SparseCoder(**QUICK, max_steps=2).fit_rows(ArrayRows(small_data()), observers=[log])
    assert 1000 <= lines[0]["seconds"] < 1100
