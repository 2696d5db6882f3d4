"""Data larger than the memory one would spend on it trains from a memory-mapped file or a folder of shards."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import softspike
from small import small_data

ROWS, FEATURES = 2_100_000, 256  # float32: 2.2 GB, of which the file system stores only what is written


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="private memory is read from /proc")
def test_two_gigabytes_train_in_little_private_memory(tmp_path):
    path = tmp_path / "large.npy"
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, FEATURES))
    random = np.random.default_rng(0)
    for first in range(0, ROWS, ROWS // 20):
        array[first : first + 500] = random.standard_normal((500, FEATURES))
    del array
    (tmp_path / "few.json").write_text('{"dictionary_refits": 1}')  # the last fit reads a few thousand rows only
    words = ["train", path, "-o", tmp_path / "run", "--steps", 5, "--components", 64, "--config", tmp_path / "few.json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "softspike", *map(str, words)], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, private_kb(process.pid))
        time.sleep(0.02)
    path.unlink()
    assert process.returncode == 0
    assert 1e5 < peak < 8e5
    print(f"peak private memory {peak / 1e6:.2f} GB")
    assert json.loads((tmp_path / "run/summary.json").read_bytes())["n_samples"] > 1000


def private_kb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def test_a_folder_of_shards_trains_as_the_one_file_does(tmp_path):
    x = small_data()
    np.save(tmp_path / "whole.npy", x)
    (tmp_path / "shards").mkdir()
    for number, part in enumerate(np.split(x, [100, 130])):
        np.save(tmp_path / f"shards/part-{number}.npy", part)
    for data in ("whole.npy", "shards"):
        assert softspike("train", data, "-o", f"run-{data}", "--steps", 5, folder=tmp_path).code == 0
    models = [(tmp_path / f"run-{data}/model.safetensors").read_bytes() for data in ("whole.npy", "shards")]
    assert models[0] == models[1]
