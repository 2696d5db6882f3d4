"""Of two processes one is killed: the job goes on from the checkpoint. One hangs: the other says so and ends."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from command import softspike
from train.test_team import ENVIRONMENT, HERE

sys.path.insert(0, str(Path(__file__).parents[2]))

from drills.team import one_is_killed, prepare

from softspike.launch import team_of
from softspike.run import RunFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lost")
    prepare(place)
    return place


def test_a_killed_process_is_replaced(folder):
    """TopK draws no noise, so one undisturbed process ends where the two do, but for rounding."""
    words = ["train", "data.npy", "--method", "topk", "--components", 24, "--active", 3, "--batch", 32]
    assert softspike(*words, "--steps", 120, "-o", "alone", folder=folder).code == 0
    found = one_is_killed(folder, "two", rank=1, steps=120, more=["--method", "topk"])
    assert found["exit code"] == 0, found["model"]
    assert found["steps logged"] == [50, 100, 120]
    alone, two = (RunFolder(folder / run).load_model() for run in ("alone", "two"))
    for name, value in alone.items():
        if name != "model.silent":  # steps since a component last fired: the leader's half of the batch
            torch.testing.assert_close(two[name], value, rtol=1e-2, atol=1e-3, equal_nan=True)


def test_a_process_that_hangs_is_named(folder):
    words = ["train", "data.npy", "--method", "topk", "--components", "24", "--steps", "1000000"]
    command = [sys.executable, str(HERE / "hung_process.py"), *words, "-o", "run", "--checkpoint-every", "5"]
    environment = {**ENVIRONMENT, "SOFTSPIKE_PATIENCE": "3"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, env=environment)
    assert done.stdout.split() == ["1"], done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("softspike: ")]
    assert len(said) == 1
    assert said[0].startswith("softspike: process 0 of 2 has heard nothing from another for 3 s (Timed out waiting")
    assert "start the same command again with --resume" in said[0]
    assert RunFolder(folder / "run").last_checkpoint()[0] >= 5


@pytest.mark.parametrize("given", ["soon", "-1", "nan", ""])
def test_a_patience_that_is_none(monkeypatch, given):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("SOFTSPIKE_PATIENCE", given)
    with (
        pytest.raises(ValueError, match=f"SOFTSPIKE_PATIENCE is '{given}', expected a number of seconds"),
        team_of("cpu"),
    ):
        pytest.fail("it was believed")
