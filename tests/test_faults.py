"""The disk and the signals turn against a run: it says so in one line, and what was written before stays whole."""

import errno
import gzip
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import softspike, start
from small import small_data
from train.test_resume import wait_for

from softspike.command.exits import again
from softspike.run import RunFolder, RunWarning

WORDS = ["train", "data.npy", "--method", "topk", "--components", 24, "--active", 3]
NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Data, and a run of 60 steps that nobody disturbed."""
    folder = tmp_path_factory.mktemp("faults")
    np.save(folder / "data.npy", small_data())
    assert softspike(*WORDS, "--steps", 60, "-o", "whole", "--checkpoint-every", 10, folder=folder).code == 0
    return folder


def model(run):
    return (run / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_saves_the_step_at_hand(bench, number, code):
    """And the run goes on from that very step, to the same bits as one with a checkpoint elsewhere."""
    out = f"signal-{code}"
    running = start(*WORDS, "--steps", 2000, "-o", out, "--checkpoint-every", 10_000, "--device", "cpu", folder=bench)
    wait_for(lambda: (bench / out / "metrics.jsonl").exists())
    os.kill(running.pid, number)
    outcome = running.wait()
    assert outcome.code == code
    step = RunFolder(bench / out).last_checkpoint()[0]
    hint = f"go on with: softspike train data.npy -o {out} --device cpu --checkpoint-every 10000 --resume"
    assert outcome.sentence == f"softspike: interrupted after step {step}, which is saved; {hint}"


def test_the_way_to_go_on_has_what_the_folder_does_not_know(tmp_path):
    (tmp_path / "c.json").write_text('{"device": "cpu", "max_steps": 5, "n_components": 4}')
    words = ["--config", "c.json", "--steps", 100_000, "--checkpoint-every", 7, "--log", "csv", "--key", "x"]
    np.savez(tmp_path / "two.npz", x=small_data(64), y=small_data(64))
    running = start("train", "two.npz", "-o", "new", *words, folder=tmp_path)
    wait_for(lambda: (tmp_path / "new/metrics.jsonl").exists())
    os.kill(running.pid, signal.SIGTERM)
    options = "--key x --device cpu --checkpoint-every 7 --log csv --resume"
    assert running.wait().sentence.endswith(f"; go on with: softspike train two.npz -o new {options}")


def test_under_torchrun_it_goes_on_with_as_many_processes(monkeypatch):
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    said = again("train", "my data.npy", "-o", "run", options=[("--key", None), ("--device", "cuda")])
    command = "torchrun --nproc-per-node 2 -m softspike train 'my data.npy' -o run --device cuda --resume"
    assert said == f"; go on with: {command}"


def is_read(path, pid):
    """Whether a process has the file open."""
    return any(os.path.samefile(file, path) for file in Path(f"/proc/{pid}/fd").iterdir() if file.exists())


def test_a_signal_before_training_is_one_line_too(bench, tmp_path):
    """Reading takes a while here: there is much to unpack."""
    header, n_parts = struct.pack(">BBBBII", 0, 0, 8, 2, 30 * 2**14, 2**10), 30
    parts = [gzip.compress(header), *[gzip.compress(bytes(2**24), 1)] * n_parts]
    (tmp_path / "data.gz").write_bytes(b"".join(parts))
    running = start("train", "data.gz", "-o", "run", folder=tmp_path)
    wait_for(lambda: is_read(tmp_path / "data.gz", running.pid))
    os.kill(running.pid, signal.SIGTERM)
    outcome = running.wait()
    assert outcome.code == 143
    assert outcome.sentence == "softspike: interrupted"
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode:
        pytest.skip("this system gives no mount namespace to put a small disk in")
    folder = tmp_path_factory.mktemp("disk")
    script = [*NAMESPACE, sys.executable, str(Path(__file__).parent / "faulty_disk.py"), str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(script, capture_output=True, text=True, timeout=200, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# fault → what is said when a checkpoint cannot be written, and when the run is resumed before the fault is mended
STEP = r"cannot write disk/run/checkpoints/step-000000030\.safetensors"
SAID = {
    "fill": (STEP + r" \(No space left on device\); make room or choose another place", "cannot write"),
    "make_read_only": (STEP + r" \(Read-only file system\)", "cannot write"),
    "vanish": (r"cannot write disk/run/checkpoints \(No such file or directory\)", "is not a run folder"),
}


@pytest.mark.parametrize("fault", SAID)
def test_a_faulty_disk(faults, fault):
    found, (said, again) = faults[fault], SAID[fault]
    assert found["code"] == 1
    assert len(found["said"]) == 1
    assert re.search(said, found["said"][0])
    assert again in found["resumed while broken"][1][-1]
    assert "\n" not in found["said"][0]
    if fault == "vanish":
        assert found["resumed"] == 2  # nothing is left to go on from
    else:
        assert "go on with: softspike train data.npy -o disk/run --checkpoint-every 10 --resume" in found["said"][0]
        assert found["kept"] == 20
        assert found["resumed"] == 0
        assert found["same bits"]


def test_a_log_that_cannot_be_appended_to_is_named(tmp_path):
    run, before = RunFolder(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    run.append_metrics({"step": 1})
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))  # bytes, for every file of this process
    try:
        with pytest.raises(OSError, match=r"cannot write .*metrics\.jsonl \(File too large\)") as caught:
            run.append_metrics({"step": 2, "total": 0.5})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.__cause__.errno == errno.EFBIG
    assert run.metrics() == [{"step": 1}]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(bench, tmp_path, damage):
    for name in ("whole", "data.npy"):
        (shutil.copytree if name == "whole" else shutil.copy)(bench / name, tmp_path / name)
    run = RunFolder(tmp_path / "whole")
    (run.path / "model.safetensors").unlink()
    newest, before = run.checkpoints()
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes({"truncated": content[:-9], "flipped": content, "empty": b""}[damage])
    said = r"step-000000060\.safetensors is damaged .*; the checkpoint before it is used, of step 50$"
    with pytest.warns(RunWarning, match=said):
        assert run.last_checkpoint()[0] == 50
    outcome = softspike("train", "data.npy", "-o", "whole", "--resume", folder=tmp_path)
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if "is damaged" in line]
    assert len(told) == 1
    assert told[0].startswith("softspike: whole/checkpoints/step-000000060.safetensors is damaged")
    assert model(run.path) == model(bench / "whole")
    assert before.exists()


def test_what_a_killed_process_had_begun_is_swept_up(tmp_path):
    run = RunFolder(tmp_path / "run").create({})
    run.save_checkpoint(1, {})
    torn = [run.path / ".config.json.77.tmp", run.path / "checkpoints/.step-000000002.safetensors.77.tmp"]
    for path in torn:
        path.write_bytes(b"half")
    run.unlock()
    RunFolder(run.path).lock()
    assert not any(path.exists() for path in torn)
    assert RunFolder(run.path).last_checkpoint()[0] == 1
