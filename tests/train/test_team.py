"""Two processes train as one: the same gradient, the same figures, one of them writes, and one alone can go on."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from command import softspike
from small import small_data

from softspike.run import RunFolder

HERE = Path(__file__).parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[1] / "src")}


@pytest.fixture(scope="module")
def findings():
    script = [sys.executable, str(HERE / "two_processes.py")]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["linear", "conv"])
def test_the_averaged_gradient_is_that_of_the_joined_batch(findings, kind):
    """Three steps of SGD with clipping, mirrored images, best of J, batch norm: weights to 1e-5, figures to 1e-4."""
    found = findings[f"{kind} FullPrecision"]
    assert found["moved"] > 0.05
    assert found["differs from alone"] < 1e-5
    assert found["figures differ"] < 1e-4


@pytest.mark.parametrize("kind", ["linear", "conv"])
@pytest.mark.parametrize("precision", ["FullPrecision", "BFloat16"])
def test_processes_hold_the_same_bits(findings, kind, precision):
    assert findings[f"{kind} {precision}"]["processes differ"] == 0


def test_levels_that_follow_the_batch_follow_the_leader(findings):
    """Each process sees another half of the batch, and still they end with the same level, price and noise."""
    assert findings["steered FullPrecision"]["processes differ"] == 0


def torchrun(folder, *words):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=200, env=ENVIRONMENT)


ENDING = """
import sys
from pathlib import Path
import torch
from softspike.command.launch import team_of
with team_of("cpu") as (team, _):
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])
    team.agree(True)
names = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
sys.exit(any("gloo" in name for name in names))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no list of threads")
def test_no_thread_of_the_group_outlives_it(tmp_path):
    """One that wakes up while the interpreter ends takes the process with it (SIGABRT), though all work is done."""
    (tmp_path / "ending.py").write_text(ENDING)
    done = torchrun(tmp_path, "ending.py")
    assert done.returncode == 0, done.stderr


WORDS = ["train", "data.npy", "--method", "topk", "--components", 24, "--active", 3, "--batch", 32, "--steps", 12]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same training by one process, and by two under torchrun."""
    folder = tmp_path_factory.mktemp("team")
    np.save(folder / "data.npy", small_data())
    assert softspike(*WORDS, "-o", "one", "--checkpoint-every", 6, folder=folder).code == 0
    done = torchrun(folder, "-m", "softspike", *WORDS, "-o", "two", "--checkpoint-every", 6)
    assert done.returncode == 0, done.stderr
    return folder, done


def weights(run):
    return RunFolder(run).load_model()


def assert_close(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if name != "model.silent":  # steps since a component last fired: the leader's half of the batch
            torch.testing.assert_close(value, other[name], rtol=1e-3, atol=1e-4, equal_nan=True)


def test_torchrun_trains_the_same_model(runs):
    """TopK draws no noise, so the number of processes does not matter but for rounding."""
    folder, done = runs
    assert_close(weights(folder / "two"), weights(folder / "one"))
    assert done.stdout.count("explained variance") == 1
    assert done.stderr.count("step 12/12") == 1


def test_only_the_leader_writes(runs):
    folder, _ = runs
    names = [sorted(path.name for path in (folder / run).rglob("*")) for run in ("one", "two")]
    assert names[0] == names[1]
    lines = [json.loads(line) for line in (folder / "two/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [12]
    alone = json.loads((folder / "one/metrics.jsonl").read_text())
    for name in ("total", "misfit", "active"):  # over the whole batch, not the leader's half
        assert lines[0][name] == pytest.approx(alone[name], rel=1e-3)


def test_one_process_goes_on_with_a_checkpoint_of_two(runs, tmp_path):
    folder, _ = runs
    shutil.copytree(folder / "two", tmp_path / "two")
    np.save(tmp_path / "data.npy", small_data())
    (tmp_path / "two/model.safetensors").unlink()
    RunFolder(tmp_path / "two").checkpoints()[0].unlink()
    assert RunFolder(tmp_path / "two").last_checkpoint()[0] == 6
    resumed = softspike("train", "data.npy", "-o", "two", "--resume", folder=tmp_path)
    assert resumed.code == 0, resumed.err
    assert_close(weights(tmp_path / "two"), weights(folder / "one"))


def test_a_wrong_word_is_answered_once(runs):
    """Both processes end with the same exit code; the leader alone says why."""
    folder, _ = runs
    command = [sys.executable, str(HERE / "two_commands.py"), *map(str, WORDS), "-o", "two"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, env=ENVIRONMENT)
    assert done.stdout.split() == ["2", "2"], done.stderr
    assert done.stderr.count("softspike: ") == 1
    assert "softspike: two already holds a run" in done.stderr


def test_a_wrong_device_is_told_as_it_is_to_one_process(runs):
    folder, _ = runs
    command = [sys.executable, str(HERE / "two_commands.py"), *map(str, WORDS), "-o", "three", "--device", "foo"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, env=ENVIRONMENT)
    assert done.stdout.split() == ["2", "2"], done.stderr
    assert "softspike: device is 'foo', expected 'auto', 'cpu' or 'cuda'" in done.stderr
