"""Training steps with the best of J samples on a CPU: the winner's gradient only, against all J differentiated.

    python -m benchmarks.best_of [--threads 2]

The paper's model: batches of 100, D = d = 256, MLP encoder, thresholded Laplacian, published recipe. Both variants take
turns in one process, so that what else the machine does hits both; memory is what a step adds to a fresh process.
"At best" is what the gain would be if drawing and scoring cost nothing: a step with one sample in the winner's place.
"""

import argparse
import resource
import statistics
import threading
import time
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch

from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain, Objective
from softspike.train import train_in_turn

ROWS = 1000


def stepper(objective: Objective, n_steps: int):
    """A function that runs so many training steps of a new model."""
    coder, _ = build_published(PUBLISHED["thresholded-laplacian"], Study(), SCRIPTS, objective)
    recipe = build_published(PUBLISHED["thresholded-laplacian"], Study(n_steps=n_steps), SCRIPTS, objective).recipe
    rows = TensorRows(torch.randn(ROWS, 256))
    return lambda: train_in_turn([coder], rows, recipe, seeds=[0])


class Gain(NamedTuple):
    """How many times faster than differentiating all J: medians of paired runs."""

    wall: float
    spread: float
    worked: float  # in processor time
    at_best: float  # in processor time, if J samples cost what one does


def ratio(n_samples: int, repeats: int, n_steps: int = 5) -> Gain:
    """The gain of the winner-only step."""
    runs = [stepper(objective, n_steps) for objective in (BestOfPlain(n_samples), BestOf(n_samples), BestOf(1))]
    for run in runs:
        run()
    wall, worked = [], []
    for _ in range(repeats):
        times = [(time.perf_counter(), time.process_time())]
        for run in runs:
            run()
            times.append((time.perf_counter(), time.process_time()))
        plain, winner, single = ([end - begun for begun, end in zip(a, b, strict=True)] for a, b in pairwise(times))
        wall.append(plain[0] / winner[0])
        worked.append((plain[1] / winner[1], plain[1] / single[1]))
    ours, at_best = (statistics.median(column) for column in zip(*worked, strict=True))
    return Gain(statistics.median(wall), max(wall) - min(wall), ours, at_best)


def peak(job: tuple[type, int]) -> float:
    """MB that training with this objective adds to a process at its largest, looked at every millisecond."""
    objective, n_samples = job
    torch.set_num_threads(1)
    run = stepper(objective(n_samples), 5)
    before, seen, done = resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            seen.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run()
    done.set()
    watcher.join()
    return max(seen) - before


def resident() -> float:
    """MB of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    heads = f"{'J':>4} {'times faster':>13} {'spread':>7} {'less CPU':>9} {'at best':>8}"
    print(f"{heads} {'MB, winner only':>16} {'MB, all J':>10}")
    for n_samples in (1, 5, 20, 100):
        gain = ratio(n_samples, options.repeats)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            ours, plain = pool.map(peak, [(BestOf, n_samples), (BestOfPlain, n_samples)], chunksize=1)
        figures = f"{n_samples:4d} {gain.wall:13.2f} {gain.spread:7.2f} {gain.worked:9.2f} {gain.at_best:8.2f}"
        print(f"{figures} {ours:16.0f} {plain:10.0f}", flush=True)


if __name__ == "__main__":
    main()
