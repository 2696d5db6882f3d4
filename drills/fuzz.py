"""Every reader under mutated files: python -m drills.fuzz [kind …] [--inputs 100000]

For each kind of file, whole samples are injured at random (seeded: input n of a kind is the same every time) and read
in worker processes. What may happen: the file is read after all, or the one documented error is raised. What may not:
another exception, a dead process, more than 5 seconds for one input, more than 1 GB of memory beyond what an idle
worker has (address space is limited to that, so more cannot even be asked for).
"""

import argparse
import ctypes
import multiprocessing as mp
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import torch

from drills.mutations import mutated
from drills.targets import TARGETS, Sample

__all__ = ["Tally", "fuzz", "main"]

MOST_SECONDS, MOST_BYTES = 5.0, 10**9
_WORSE = 5  # faults of a kind that are shown


class Tally(NamedTuple):
    kind: str
    inputs: int
    refused: int  # with the documented error
    slowest: float  # seconds for one input
    grown: float  # MB that the largest worker's memory grew by
    largest: int  # the input that last made it grow
    out_of_memory: int  # inputs that were refused because they met the limit of memory
    faults: list[str]

    def line(self) -> str:
        outcome = "no fault" if not self.faults else f"{len(self.faults)} FAULTS"
        return (
            f"{self.kind:12} {self.inputs:8} inputs, {self.refused:8} refused, slowest {self.slowest:5.2f} s, "
            f"memory +{self.grown:4.0f} MB (input {self.largest}), met the limit {self.out_of_memory:4}, {outcome}"
        )


class _State(ctypes.Structure):
    """What a worker tells its keeper, in shared memory."""

    _fields_ = (("number", ctypes.c_long), ("begun", ctypes.c_double), ("refused", ctypes.c_long),
                ("starved", ctypes.c_long), ("slowest", ctypes.c_double), ("grown", ctypes.c_double),
                ("largest", ctypes.c_long))  # fmt: skip


def fuzz(kind: str, inputs: int, workers: int = 2, first: int = 0) -> Tally:
    """Read the inputs first … first + inputs of a kind."""
    fork = mp.get_context("fork")
    faults = fork.SimpleQueue()
    samples = TARGETS[kind].samples()
    spans = [(first + inputs * n // workers, first + inputs * (n + 1) // workers) for n in range(workers)]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        os.environ["SOFTSPIKE_CACHE"] = f"{folder}/cache"
        keepers = [_Keeper(fork, kind, samples, span, Path(folder) / str(n), faults) for n, span in enumerate(spans)]
        found: list[str] = []
        while sum(keeper.watched() for keeper in keepers):  # all are asked
            while not faults.empty():
                found.append(faults.get())
            time.sleep(0.02)
        while not faults.empty():
            found.append(faults.get())
        found += [fault for keeper in keepers for fault in keeper.deaths]
    states = [keeper.state for keeper in keepers]
    return Tally(
        kind, inputs, sum(s.refused for s in states), max(s.slowest for s in states),
        *max((s.grown, s.largest) for s in states), sum(s.starved for s in states), found,
    )  # fmt: skip


class _Keeper:
    """Starts a worker, and another after the input that killed it or took too long."""

    def __init__(self, fork: Any, kind: str, samples: list[Sample], span: tuple[int, int], folder: Path, faults: Any):
        self.fork, self.kind, self.samples, self.folder, self.faults = fork, kind, samples, folder, faults
        self.next, self.end = span
        self.state, self.deaths = fork.Value(_State, lock=False), []
        folder.mkdir()
        self._start()

    def _start(self) -> None:
        self.state.begun = 0.0
        self.worker = self.fork.Process(
            target=_work, args=(self.kind, self.samples, self.next, self.end, self.folder, self.state, self.faults)
        )
        self.worker.start()

    def watched(self) -> bool:
        """Whether there is more to do."""
        if self.worker.is_alive():
            if self.state.begun and time.monotonic() - self.state.begun > MOST_SECONDS:
                self.worker.kill()
                self.worker.join()
                self._bury(f"more than {MOST_SECONDS:g} s")
            return True
        if self.worker.exitcode == 0:
            return False
        self._bury(f"the process died with {self.worker.exitcode}")
        return self.next < self.end

    def _bury(self, why: str) -> None:
        if not self.state.begun:
            raise RuntimeError(f"the whole samples of {self.kind} are not read")
        self.deaths.append(f"{self.kind} input {self.state.number}: {why}")
        self.next = self.state.number + 1
        self._start()


def injured(kind: str, samples: list[Sample], number: int) -> Sample:
    """Input `number` of a kind, whole and ready to be written."""
    chance = random.Random(f"{kind} {number}")
    sample, other = chance.choice(samples), chance.choice(samples)
    return sample._replace(content=sample.sealed(mutated(sample.content, other.content, chance)))


def _work(kind: str, samples: list[Sample], first: int, end: int, folder: Path, state: Any, faults: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (libraries talk about broken files)
    target = TARGETS[kind]
    for sample in samples:  # whole, they must be read; and imports and caches belong to no input
        _try(target, sample._replace(content=sample.sealed(sample.content)), folder)
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + MOST_BYTES, -1))
    before = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(first, end):
        state.number, state.begun = number, time.monotonic()
        try:
            _try(target, injured(kind, samples, number), folder)
        except target.error as error:
            state.refused += 1
            state.starved += isinstance(error.__cause__, MemoryError)
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            faults.put(
                f"{kind} input {number}: {type(error).__name__}: {error} ({place.filename}:{place.lineno})"[:400]
            )
        state.slowest = max(state.slowest, time.monotonic() - state.begun)
        grown = (1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
        if grown > state.grown:
            state.grown, state.largest = grown, number
    state.begun = 0.0


def _try(target: Any, sample: Sample, folder: Path) -> None:
    path = folder / sample.name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sample.content)
    try:
        target.read(path)
    finally:
        path.unlink(missing_ok=True)


def _memory(name: str) -> int:
    """Of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--inputs", type=int, default=100_000, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    given = parser.parse_args()
    bad = 0
    for kind in given.kinds or TARGETS:
        begun = time.monotonic()
        tally = fuzz(kind, given.inputs, given.workers, given.first)
        bad += len(tally.faults)
        print(f"{tally.line()} ({time.monotonic() - begun:.0f} s)", *tally.faults[:_WORSE], sep="\n    ", flush=True)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
