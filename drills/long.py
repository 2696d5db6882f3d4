"""Long and loaded: python -m drills.long [transforms] [steps] [--count 1000000]

A million `transform` calls by eight threads at once, every result compared with that of one thread; a million training
steps with checkpoints. Memory, open files and the processor time of a call or step must not grow.
"""

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from softspike import SparseCoder
from softspike.data import ArrayRows, synthetic
from softspike.run import RunFolder
from softspike.train import Progress

__all__ = ["Growth", "steps", "transforms"]

MOST_GROWTH, MOST_SLOWER = 50.0, 1.2  # MB; last tenth over second tenth


class Sample(NamedTuple):
    done: int
    memory: float  # resident, MB
    files: int  # open
    seconds: float  # of processor time, all threads


class Growth(NamedTuple):
    what: str
    count: int
    samples: list[Sample]
    wrong: int = 0  # results that differ from those of one thread

    @property
    def settled(self) -> list[Sample]:
        """After the first tenth: caches are filled."""
        return [sample for sample in self.samples if sample.done >= self.count // 10]

    @property
    def grown(self) -> float:
        return max(sample.memory for sample in self.settled) - self.settled[0].memory

    @property
    def slower(self) -> float:
        """Processor time per call in the last tenth over that in the second."""
        tenth = max(len(self.settled) // 9, 1)
        second, last = self.settled[: tenth + 1], self.settled[-tenth - 1 :]
        pace = [(part[-1].seconds - part[0].seconds) / (part[-1].done - part[0].done) for part in (second, last)]
        return pace[1] / pace[0]

    @property
    def good(self) -> bool:
        files = {sample.files for sample in self.settled}
        return self.grown < MOST_GROWTH and self.slower < MOST_SLOWER and len(files) == 1 and not self.wrong

    def line(self) -> str:
        files = sorted({sample.files for sample in self.settled})
        each = 1e3 * (self.samples[-1].seconds - self.samples[0].seconds) / self.count
        return (
            f"{self.count} {self.what}: {self.wrong} wrong, memory +{self.grown:.1f} MB, open files {files}, "
            f"{each:.2f} ms of processor time each, last tenth over second {self.slower:.3f}"
            f"{'' if self.good else ', NOT GOOD'}"
        )


def sample(done: int) -> Sample:
    """Of this process, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))
    return Sample(done, pages * os.sysconf("SC_PAGE_SIZE") / 1e6, files, time.process_time())


def _data() -> np.ndarray:
    return 1 + synthetic(512, 6, 8, 2, 0, noise=0.05, positive=False).x.numpy()


def transforms(count: int, n_threads: int = 8, method: str = "topk") -> Growth:
    """Calls on batches of one to eight rows, of float32 and float64 alike."""
    coder = SparseCoder(8, n_active=2, method=method, max_steps=200, batch_size=32, random_state=0, verbose=False)
    coder.fit(_data())
    batches = [_data()[n : n + 1 + n % 8].astype("f4" if n % 2 else "f8") for n in range(64)]
    expected = [coder.transform(batch) for batch in batches]
    done, wrong, samples = [0] * n_threads, [0] * n_threads, [sample(0)]

    def work(number: int) -> None:
        for call in range(count // n_threads):
            n = (call * n_threads + number) % len(batches)
            wrong[number] += not _same(coder.transform(batches[n]), expected[n])
            done[number] = call + 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.05)
        if sum(done) >= samples[-1].done + count // 100:
            samples.append(sample(sum(done)))
    for thread in threads:
        thread.join()
    return Growth(f"transforms by {n_threads} threads ({method})", count, [*samples, sample(sum(done))], sum(wrong))


def _same(one: Any, other: Any) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data"))


class _Sampler:
    """Looks a hundred times."""

    def __init__(self, count: int, samples: list[Sample]):
        self.every, self.samples = max(count // 100, 1), samples

    def logged(self, progress: Progress) -> None:
        if progress.step % self.every == 0:
            self.samples.append(sample(progress.step))

    def saved(self, progress: Progress) -> None: ...


def steps(count: int, method: str = "topk") -> Growth:
    """A tiny model, trained with its log and a checkpoint every thousandth of the way."""
    samples = [sample(0)]
    coder = SparseCoder(8, n_active=2, method=method, max_steps=count, batch_size=8, random_state=0, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(folder).create({})
        coder.fit_rows(
            ArrayRows(_data()), observers=[_Sampler(count, samples), _Logged(run.append_metrics)],
            on_checkpoint=run.save_checkpoint, checkpoint_every=max(count // 1000, 1),
        )  # fmt: skip
        run.unlock()
    return Growth(f"training steps ({method})", count, samples)


class _Logged:
    def __init__(self, append: Callable[[dict[str, float]], object]):
        self.append = append

    def logged(self, progress: Progress) -> None:
        self.append({"step": progress.step, "total": float(progress.loss.total)})

    def saved(self, progress: Progress) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["transforms", "steps"])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--method", default="topk")
    given = parser.parse_args()
    torch.set_num_threads(1)
    good = True
    for part in given.parts:
        begun = time.monotonic()
        growth = {"transforms": transforms, "steps": steps}[part](given.count, method=given.method)
        good &= growth.good
        print(f"{growth.line()} ({time.monotonic() - begun:.0f} s)", flush=True)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
