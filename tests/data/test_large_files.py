"""A file of 2 GB is standardised and sampled with little private memory."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="private memory is read from /proc")

SHAPE = (1_000_000, 256)  # float64: 2 GB, of which the file system stores only what is written

SCRIPT = """
import sys, torch
from softspike.data import StandardisedRows, Standardiser, read_rows

rows = read_rows(sys.argv[1])
standardiser = Standardiser.fit(rows) if sys.argv[2] == "all" else Standardiser.identity(rows.n_features)
standard, random = StandardisedRows(rows, standardiser), torch.Generator().manual_seed(0)
for _ in range(50):
    x = standard.take(torch.randint(len(rows), (100,), generator=random))
print(len(rows), float(standardiser.scale))
"""


@pytest.fixture(scope="module")
def sparse_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.npy"
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=SHAPE)
    array[-1] = SHAPE[0] ** 0.5
    del array
    yield path
    path.unlink()


def run(path, extent):
    """The scale that was found; the private memory is watched all the while."""
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), extent], stdout=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, private_kb(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    n_rows, scale = process.stdout.read().split()
    assert int(n_rows) == SHAPE[0]
    assert 1e4 < peak < 5e5
    return float(scale)


def private_kb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def test_batches_of_a_large_file(sparse_file):
    run(sparse_file, "batches")


@pytest.mark.slow
def test_statistics_of_a_large_file(sparse_file):
    """One row of √n among n zeros: the variance is 1 − 1/n."""
    assert run(sparse_file, "all") == pytest.approx(1, rel=1e-5)
