"""Coding and decoding many rows: the same as plainly, on all cores, at a memory that does not grow."""

import contextlib
import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse
from small import quick, small_data

from softspike import SparseCoder
from softspike.inference import GrowingCSR, decoding

X = small_data()
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@pytest.fixture(scope="module")
def coder():
    return quick().fit(X)


@both_types
def test_growing_equals_stacking(dtype):
    """Blocks with rows of zeros, and of no rows, one after the other: exactly scipy's matrix."""
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((500, 30)) * (generator.random((500, 30)) < 0.1)
    dense[100:140] = 0
    found = GrowingCSR(30, np.dtype(dtype), 500)
    for part in np.split(dense.astype(dtype), [0, 7, 90, 130, 400]):
        found.append(part)
    result = found.finished()
    expected = sparse.csr_matrix(dense.astype(dtype))
    assert result.dtype == dtype
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(result, name), getattr(expected, name))
    assert result.indices.dtype == result.indptr.dtype
    assert GrowingCSR(3, np.dtype(dtype), 0).finished().shape == (0, 3)


@both_types
@pytest.mark.parametrize("method", ["hard-gaussian", "fista", "topk"])
def test_batches_and_threads_do_not_matter(monkeypatch, method, dtype):
    """To 1e-5 of the largest code in float32: sums are taken in another order."""
    coder = quick(method=method).fit(X)
    x = X.astype(dtype)
    whole = coder.transform(x)
    monkeypatch.setattr("softspike.inference.coding._BATCH_NUMBERS", 700)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        parts = coder.transform(x)
        assert torch.get_num_threads() == 3
        codes, std = coder.transform(x, return_std=True) if method == "hard-gaussian" else (parts, None)
    finally:
        torch.set_num_threads(threads)
    assert parts.dtype == whole.dtype == dtype
    assert abs(parts - whole).max() <= 1e-3 * abs(whole).max()
    assert np.mean((parts != 0).toarray() == (whole != 0).toarray()) > 0.999
    assert abs(codes - parts).max() == 0
    assert std is None or std.shape == whole.shape


def test_two_batches_are_coded_at_the_same_time(monkeypatch):
    """The first two batches wait for each other, which ends only where each has a thread of its own; with one thread in
    all, the first batch waits in vain."""
    coder = quick().fit(X)
    expected, plain = coder.transform(X), coder.inference_.coder.code
    monkeypatch.setattr("softspike.inference.coding._BATCH_NUMBERS", 700)

    def together(n_threads, patience):
        meeting, calls, own_threads = threading.Barrier(2), itertools.count(), set()

        def code(x):
            if next(calls) < 2:
                meeting.wait(patience)
                own_threads.add((threading.get_ident(), torch.get_num_threads()))
            return plain(x)

        monkeypatch.setattr(coder.inference_.coder, "code", code)
        torch.set_num_threads(n_threads)
        return coder.transform(X), own_threads

    threads = torch.get_num_threads()
    try:
        codes, own_threads = together(2, patience=60)
        with pytest.raises(threading.BrokenBarrierError):
            together(1, patience=0.2)
    finally:
        torch.set_num_threads(threads)
    assert len(own_threads) == 2
    assert {n for _, n in own_threads} == {1}  # torch does not divide what threads do already
    assert abs(codes - expected).max() <= 1e-3 * abs(expected).max()


BUSY = """
import numpy as np, torch
from softspike import SparseCoder
from softspike.inference import coding as inference
from softspike.model import VariationalCoder
VariationalCoder._calibrate_by_simulation = lambda *given: None  # takes longer than the rest, and codes need it not
inference._BATCH_NUMBERS = 2**15  # many batches of few rows, so that the last ones hardly count
X = np.random.default_rng(0).standard_normal((4096, 64), dtype=np.float32)
options = {"max_steps": 3, "batch_size": 64, "dictionary_refits": 0, "random_state": 0, "verbose": False}
coder = SparseCoder(128, **options).fit(X[:500])
for threads in (1, 2):
    torch.set_num_threads(threads)
    print(threads, flush=True)
    coder.transform(X)
    print(0, flush=True)
"""


def runnable(pid):
    """How many threads of a process run, or would if a core were free."""
    states = []
    for task in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # a thread that has ended since
            states.append(task.read_text().rsplit(")", 1)[1].split()[0])
    return states.count("R")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the states of threads as Linux gives them")
def test_all_threads_work_at_once():
    """Two threads: both have work for most of the time, and with one only one has. What waits for a core counts as
    working, so that this does not depend on what else the machine does; what waits for Python's lock does not."""
    seen, done = {"1": [], "2": []}, subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True)
    said = []
    listener = threading.Thread(target=lambda: said.extend(line.strip() for line in done.stdout))
    listener.start()
    while done.poll() is None:
        if said and said[-1] in seen:
            seen[said[-1]].append(runnable(done.pid) >= 2)
        time.sleep(0.001)
    listener.join()
    done.stdout.close()
    assert done.returncode == 0
    assert min(map(len, seen.values())) > 20
    assert np.mean(seen["1"]) < 0.1
    assert np.mean(seen["2"]) > 0.5


@both_types
@pytest.mark.parametrize("shape", [(700, 64, 40), (300, 30, 200), (50, 1000, 16), (1, 5, 5)], ids=str)
@pytest.mark.parametrize("activity", [0.0, 0.02, 0.1, 0.9])
@pytest.mark.parametrize("way", decoding.WAYS)
def test_every_way_to_decode_is_the_plain_one(monkeypatch, way, shape, activity, dtype):
    """Relative to the largest value: 1e-5 in float32, 1e-12 in float64; rows without non-zeros are 0."""
    n, d, features = shape
    generator = np.random.default_rng(0)
    codes = sparse.random(n, d, activity, "csr", rng=generator, dtype=np.float64).astype(dtype)
    atoms = generator.standard_normal((d, features)).astype(dtype)
    monkeypatch.setattr(decoding, "_SMALL", 0)
    monkeypatch.setattr(decoding, "_CHUNK_NUMBERS", 9000)
    monkeypatch.setattr(decoding, "_fastest", lambda *given: way)
    found, expected = decoding.decode_csr(codes, atoms), decoding.plain(codes, atoms)
    assert found.dtype == dtype
    tolerance = (1e-5 if dtype == np.float32 else 1e-12) * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_the_faster_way_is_measured_once(monkeypatch):
    """Whatever is fastest is taken, from then on for matrices of its kind."""
    codes, atoms = sparse.random(400, 100, 0.1, "csr", dtype=np.float32), np.ones((100, 150), np.float32)
    asked = []

    def seconds(way, *given):
        asked.append(way)
        return 0.0 if way is decoding.gathered else 1.0

    monkeypatch.setattr(decoding, "_SMALL", 0)
    monkeypatch.setattr(decoding, "_known", {})
    monkeypatch.setattr(decoding, "_seconds", seconds)
    for _ in range(3):
        np.testing.assert_allclose(decoding.decode_csr(codes, atoms), decoding.plain(codes, atoms), rtol=1e-4)
    assert list(decoding._known.values()) == ["gathered"]
    assert len(asked) == len(decoding.WAYS)


@pytest.mark.parametrize("fast", decoding.WAYS)
def test_the_way_that_takes_least_time_is_chosen(monkeypatch, fast):
    """Of real clocks: the two others sleep. And by rows from all over, of which the first are empty."""
    tried = []

    def slow(codes, atoms):
        time.sleep(0.02)
        return decoding.plain(codes, atoms)

    def quick(codes, atoms):
        tried.append(codes.nnz)
        return decoding.plain(codes, atoms)

    for name in decoding.WAYS:
        monkeypatch.setitem(decoding.WAYS, name, quick if name == fast else slow)
    monkeypatch.setattr(decoding, "_SMALL", 0)
    monkeypatch.setattr(decoding, "_known", {})
    filled = sparse.random(3000, 30, 0.2, "csr", dtype=np.float32, rng=np.random.default_rng(0))
    codes = sparse.vstack([sparse.csr_matrix((300, 30), dtype=np.float32), filled]).tocsr()
    decoding.decode_csr(codes, np.ones((30, 20), np.float32))
    assert list(decoding._known.values()) == [fast]
    assert tried[0] == pytest.approx(256 * codes.nnz / 3300, rel=0.2)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array, np.asarray])
def test_inverse_transform_takes_any_form(coder, form):
    codes = coder.transform(X)
    expected = codes.toarray() @ coder.components_ + coder.mean_
    np.testing.assert_allclose(coder.inverse_transform(form(codes.toarray())), expected, rtol=0, atol=1e-4)


MEMORY = """
from contextlib import suppress
from pathlib import Path
import numpy as np, torch
from softspike import SparseCoder
from softspike.inference import coding as inference
from softspike.model import VariationalCoder
torch.set_num_threads(THREADS)
VariationalCoder._calibrate_by_simulation = lambda *given: None  # takes longer than the rest, and codes need it not
inference._BATCH_NUMBERS = 2**18  # small batches, beside which few codes are much; smaller ones are not compiled
TABLE = torch.randn(997, 64, generator=torch.Generator().manual_seed(0))

class Made:  # pages of a mapped file would count as memory
    n_features = 64
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def take(self, indices): return TABLE[indices % 997]

def peak():  # ru_maxrss would begin at the peak of the process that started this, and hide what is smaller
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

def coded(rows):  # the peak of this alone, where Linux can forget what was before
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    codes = coder.inference_.codes(Made(rows))
    return codes.nnz / rows, (codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes) / 2**20, peak()

options = {"max_steps": 3, "batch_size": 64, "dictionary_refits": 0, "random_state": 0, "verbose": False}
coder = SparseCoder(128, n_active=26, method=METHOD, **options)
coder.fit(Made(500).take(torch.arange(500)).numpy())
coded(FEW)
_, small, before = coded(FEW)
active, large, after = coded(ROWS)
print(active, large - small, after - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="sets the allocator of Linux, and reads the peak memory as it gives it"
)
@pytest.mark.parametrize(
    ("method", "few", "rows", "threads"),
    [("topk", 10_000, 90_000, 1), ("topk", 10_000, 90_000, 2), ("hard-gaussian", 8_000, 36_000, 1)],
)
def test_memory_does_not_grow_but_by_the_codes(method, few, rows, threads):
    """From 10,000 rows to 90,000, CSR grows by 16 MB, dense codes would by 39, and a final copy would by 32. A third
    of that for the default method, which takes longer."""
    # Freed batches go back to the system at once, so that the peak is what is in use.
    quiet = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(
        [sys.executable, "-c", f"METHOD, FEW, ROWS, THREADS = {method!r}, {few}, {rows}, {threads}\n{MEMORY}"],
        capture_output=True,
        text=True,
        check=True,
        env=quiet,
    )
    active, size, grown = map(float, done.stdout.split())
    assert active == pytest.approx(26, rel=0.2)
    assert size > 190e-6 * (rows - few)
    assert grown < 1.25 * size + 2.5


def test_codes_of_a_loaded_coder(coder, tmp_path):
    """The road from a file is the same one."""
    coder.save(tmp_path / "run")
    assert abs(SparseCoder.load(tmp_path / "run").transform(X) - coder.transform(X)).max() == 0


def test_rows_whose_squares_overflow_are_told():
    """In float32 they have no code, in float64 they have one; the others keep theirs."""
    x = np.random.default_rng(0).standard_normal((600, 12)).astype(np.float32)
    coder = SparseCoder(16, n_active=3, max_steps=20, random_state=0, verbose=False).fit(x)
    spoiled = x[:5].copy()
    spoiled[[1, 3]] *= 1e30
    with pytest.warns(UserWarning, match="2 of 5 rows have no code.*float64"):
        codes = coder.transform(spoiled).toarray()
    with pytest.warns(UserWarning, match="2 of 5 rows have no code") as told:
        coder.transform(spoiled, return_std=True)
    with pytest.warns(UserWarning, match="2 of 5 rows have no probabilities") as also:
        coder.activation_probability(spoiled)
    assert told[0].filename == also[0].filename == __file__
    assert np.isnan(codes).any(1).tolist() == [False, True, False, True, False]
    np.testing.assert_allclose(codes[[0, 2, 4]], coder.transform(x[[0, 2, 4]]).toarray(), rtol=0, atol=1e-5)
    assert np.isfinite(coder.transform(spoiled.astype(np.float64)).toarray()).all()
