"""Of two processes one hangs: the other says so and ends. That a killed one is replaced, `drills.team` shows."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist
from train.test_team import ENVIRONMENT, HERE

sys.path.insert(0, str(Path(__file__).parents[2]))

from drills.team import prepare

from softspike.command import launch
from softspike.command.launch import team_of
from softspike.run import RunFolder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("lost")
    prepare(place)
    return place


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


def test_every_start_of_a_job_has_names_of_its_own(monkeypatch):
    """torchrun's store may outlive a start: what one start left there, such as addresses, the next does not find."""
    shared, joined = dist.HashStore(), []
    monkeypatch.setattr(launch, "rendezvous", lambda *_, **__: iter([(shared, 0, 1)]))
    monkeypatch.setattr(dist, "init_process_group", lambda *_, store, **__: joined.append(store))
    for start in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", start)
        launch._meet("gloo", timedelta(seconds=1))
    joined[0].set("address of rank 1", "gone")
    assert not joined[1].check(["address of rank 1"])
    assert joined[0].check(["address of rank 1"])
