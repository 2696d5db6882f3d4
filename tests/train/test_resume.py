"""A run that goes on from a checkpoint ends in the same bits as one that was never disturbed."""

import json
import os
import signal
import time

import numpy as np
import pytest
from command import softspike, start
from small import QUICK, same_bits, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows
from softspike.fitting import Checkpoint
from softspike.methods import METHODS
from softspike.run import RunFolder

STEPS = 12


def coder(method):
    return SparseCoder(**QUICK, method=method, max_steps=STEPS)


@pytest.mark.parametrize("method", METHODS)
def test_resume_through_the_disk(method, tmp_path):
    """Stopped in the first epoch, and after it."""
    rows = ArrayRows(small_data())
    run, kept = RunFolder(tmp_path), {}

    def keep(step, tensors):
        run.save_checkpoint(step, tensors)
        kept[step] = run.last_checkpoint()

    whole = coder(method).fit_rows(rows, on_checkpoint=keep, checkpoint_every=1)
    assert list(kept) == list(range(1, STEPS + 1))
    for step in (3, 10):
        again = coder(method).fit_rows(rows, resume=Checkpoint(*kept[step]))
        assert same_bits(whole.model_tensors(), again.model_tensors())


def test_checkpoints_do_not_change_the_run():
    rows, method = ArrayRows(small_data()), next(iter(METHODS))
    plain = coder(method).fit_rows(rows)
    saving = coder(method).fit_rows(rows, on_checkpoint=lambda step, tensors: None, checkpoint_every=5)
    assert same_bits(plain.model_tensors(), saving.model_tensors())


def test_a_finished_run_resumes_to_itself():
    rows, method, last = ArrayRows(small_data()), next(iter(METHODS)), []
    whole = coder(method).fit_rows(rows, on_checkpoint=lambda *state: last.append(Checkpoint(*state)))
    assert last[-1].step == STEPS
    assert same_bits(whole.model_tensors(), coder(method).fit_rows(rows, resume=last[-1]).model_tensors())


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_killed_interrupted_and_resumed_from_the_command_line(tmp_path):
    np.save(tmp_path / "data.npy", small_data())
    words = ["train", "data.npy", "--components", 24, "--active", 3, "--steps", 600, "--checkpoint-every", 20]
    assert softspike(*words, "-o", "whole", folder=tmp_path).code == 0

    killed = start(*words, "-o", "run", folder=tmp_path)
    wait_for(lambda: RunFolder(tmp_path / "run").checkpoints())
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait().code == -signal.SIGKILL
    with open(tmp_path / "run/metrics.jsonl", "a") as file:
        file.write('{"step": 99999, "tot')  # as a crash in the middle of a write leaves it
    at = RunFolder(tmp_path / "run").last_checkpoint()[0]
    assert at < 400

    second = start("train", "data.npy", "-o", "run", "--resume", "--checkpoint-every", 15, folder=tmp_path)
    wait_for(lambda: RunFolder(tmp_path / "run").checkpoints()[0].name > f"step-{at + 20:09d}")
    os.kill(second.pid, signal.SIGINT)
    outcome = second.wait()
    assert outcome.code == 130
    step = RunFolder(tmp_path / "run").last_checkpoint()[0]
    hint = "go on with: softspike train data.npy -o run --checkpoint-every 15 --resume"
    assert outcome.sentence == f"softspike: interrupted after step {step}, which is saved; {hint}"

    assert softspike("train", "data.npy", "-o", "run", "--resume", folder=tmp_path).code == 0
    model = "model.safetensors"
    assert (tmp_path / "run" / model).read_bytes() == (tmp_path / "whole" / model).read_bytes()
    assert timeless_log(tmp_path / "run") == timeless_log(tmp_path / "whole")
    assert softspike("train", "data.npy", "-o", "run", "--resume", folder=tmp_path).code == 0  # nothing left to do
    assert (tmp_path / "run" / model).read_bytes() == (tmp_path / "whole" / model).read_bytes()


def timeless_log(run):
    return [{**json.loads(line), "seconds": 0} for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_checkpoint_of_another_model_is_one_sentence(tmp_path):
    np.save(tmp_path / "data.npy", small_data())
    words = ["train", "data.npy", "-o", "run", "--method", "topk", "--steps", 3]
    assert softspike(*words, folder=tmp_path).code == 0
    run = RunFolder(tmp_path / "run")
    config = run.config()
    for method in ("hard-gaussian", "gaussian", "jumprelu"):
        run.write_json("config.json", {**config, "estimator": {**config["estimator"], "method": method}})
        outcome = softspike("train", "data.npy", "-o", "run", "--resume", folder=tmp_path)
        assert outcome.code == 2
        assert outcome.sentence.startswith("softspike: the checkpoint of step 3 is not one of this model (")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["data.npy", "--sparsity", 0.2], "continues with sparsity = 0.1, but 0.2 was given; leave it out"),
        (["other.npy"], "other.npy is not the data that run was trained on"),
    ],
)
def test_resume_refuses_to_become_another_run(tmp_path, words, said):
    np.save(tmp_path / "data.npy", small_data())
    np.save(tmp_path / "other.npy", small_data(seed=1))
    assert softspike("train", "data.npy", "-o", "run", "--steps", 3, folder=tmp_path).code == 0
    before = (tmp_path / "run/model.safetensors").stat().st_mtime_ns
    outcome = softspike("train", *words, "-o", "run", "--resume", folder=tmp_path)
    assert outcome.code == 2
    assert said in outcome.sentence
    assert (tmp_path / "run/model.safetensors").stat().st_mtime_ns == before
