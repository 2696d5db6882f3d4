"""Training steps with the best of J samples on a CPU: the winner's gradient only, against all J differentiated.

    python -m benchmarks.best_of [-o results.json] [--threads 2] [--repeats 7] [--wait 30]

The paper's model: batches of 100, D = d = 256, thresholded Laplacian once it is warm, published recipe; with its MLP
encoder, and with the linear and the unrolled one; with Gamma levels; and the paper's other methods. All variants take
turns in one process, so that what else the machine does hits each. All J are differentiated in four ways: "first", the
loss as one writes it first, by `torch.distributions`; "bare", by a loop in plain torch written by hand and tuned
(`best_of_bare`; for the linear and the unrolled encoder, Gamma levels and spike-and-slab by `BestOfPlain` with torch's
layers and SGD); "compiled", the tuned loss through `torch.compile`, where there is a C++ compiler; "our loop",
`BestOfPlain` with our encoder and optimiser. Two columns say what would be possible, both over the bare way: "at best"
is our step with one sample in place of the best of J, and "products" is nothing but ours with all weights,
forwards and backwards, and their descent, which every step must do. Memory is what training adds to a process that has
loaded everything. In bfloat16 all but the first, the bare and the compiled way multiply in bfloat16; "our loop" is then
the comparison at equal precision.
"""

import argparse
import json
import os
import resource
import statistics
import threading
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

import torch

from benchmarks.best_of_bare import FirstBestOf
from benchmarks.best_of_steps import BY_HAND, Run, hand_written, products, stepper
from benchmarks.calm import wait_for_calm
from softspike.bench.job import machine
from softspike.choices import precision_named
from softspike.objective import BestOf, BestOfPlain
from softspike.train import Precision

OTHERS = ["gaussian", "laplacian", "spike-and-slab", "thresholded-gaussian", "thresholded-gaussian-gamma"]
MODELS = ["mlp", "linear", "unrolled", "gamma", *OTHERS]  # "mlp" and "gamma" are the thresholded Laplacians


class Gain(NamedTuple):
    """How many times faster our step is than differentiating all J: medians of paired runs, and their range."""

    wall: float  # than the bare loop
    least: float
    most: float
    first: float | None  # than the loop by torch.distributions
    compiled: float | None  # than the bare loop through torch.compile
    ours: float  # than BestOfPlain in our loop
    worked: float  # than the bare loop, in processor time
    at_best: float
    bound: float | None
    seconds: dict[str, list[float]]  # of a step, by variant and round


def measure(
    n_samples: int, repeats: int, model: str, precision: Precision, n_steps: int = 30, patience: float = 0.0
) -> Gain:
    """The gain of the winner-only step. A round waits up to `patience` seconds for a calm machine."""
    by_hand = model in BY_HAND
    runs: dict[str, Run | None] = {
        "bare": hand_written(model, n_samples, n_steps)
        if by_hand
        else stepper(BestOfPlain(n_samples), n_steps, model, bare=True),
        "first": hand_written(model, n_samples, n_steps, kind=FirstBestOf) if by_hand else None,
        "compiled": hand_written(model, n_samples, n_steps, compiled=True) if by_hand and compiles() else None,
        "plain": stepper(BestOfPlain(n_samples), n_steps, model, precision=precision),
        "winner": stepper(BestOf(n_samples), n_steps, model, precision=precision),
        "single": stepper(BestOf(1), n_steps, model, precision=precision),
        "products": products(n_steps, model, precision),
    }
    took = in_rounds({name: run for name, run in runs.items() if run is not None}, repeats, patience)

    def over(slow: str, fast: str, clock: int = 0) -> list[float]:
        return [a[clock] / b[clock] for a, b in zip(took.get(slow, []), took.get(fast, []), strict=False)]

    def median(ratios: list[float]) -> Any:
        return statistics.median(ratios) if ratios else None

    every = over("bare", "winner")
    seconds = {name: [wall / n_steps for wall, _ in turns] for name, turns in took.items()}
    return Gain(
        median(every), min(every), max(every), median(over("first", "winner")), median(over("compiled", "winner")),
        median(over("plain", "winner")), median(over("bare", "winner", 1)), median(over("bare", "single")),
        median(over("bare", "products")), seconds,
    )  # fmt: skip


def in_rounds(runs: dict[str, Run], repeats: int, patience: float) -> dict[str, list[tuple[float, float]]]:
    """What each took, (wall, processor) seconds: rounds in which all take turns, another one first in each."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(repeats):
        wait_for_calm(patience)
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            took[name].append(timed(runs[name]))
    return took


def compiles() -> bool:
    """Whether `torch.compile` finds a compiler for this CPU."""
    return any(which(name) for name in (os.environ.get("CXX", "g++"), "clang++"))


def timed(run: Run) -> tuple[float, float]:
    """Seconds on the clock, and of the processors."""
    begun = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def peak(job: tuple[type, int, str, str]) -> float:
    """MB that training with this objective adds to a process at its largest, looked at every millisecond."""
    objective, n_samples, model, named = job
    precision = precision_named(named, torch.device("cpu"))
    torch.set_num_threads(1)
    stepper(BestOf(4), 5, model, precision=precision)  # loads what is loaded once
    before, seen, done = resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            seen.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    stepper(objective(n_samples), 5, model, precision=precision)()
    done.set()
    watcher.join()
    return max(seen) - before


def resident() -> float:
    """MB of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    """Model, J and precision: all J for the MLP, 20 for the others, which multiply in float32 only."""
    for precision in options.precision:
        for model in options.models if precision == "float32" else ["mlp"]:
            for n_samples in options.samples if model == "mlp" else [20]:
                if precision == "float32" or n_samples >= 20:
                    yield model, n_samples, precision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a calm machine before a round")
    parser.add_argument("--samples", type=int, nargs="*", default=[1, 5, 20, 100])
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--precision", nargs="*", choices=["float32", "bfloat16"], default=["float32", "bfloat16"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    titles = "model, J, precision, times faster, range, first, compiled, our loop, CPU, at best, products, MB, MB all J"
    print(f"| {titles.replace(', ', ' | ')} |\n| --- |" + " ---: |" * titles.count(","))
    for model, n_samples, precision in cases(options):
        named = precision_named(precision, torch.device("cpu"))
        gain = measure(n_samples, options.repeats, model, named, patience=options.wait)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            case = n_samples, model, precision
            ours, plain = pool.map(peak, [(BestOf, *case), (BestOfPlain, *case)], chunksize=1)
        figures = [gain.first, gain.compiled, gain.ours, gain.worked, gain.at_best, gain.bound]
        shown = " | ".join("–" if figure is None else f"{figure:.2f}" for figure in figures)
        print(
            f"| {model} | {n_samples} | {precision} | {gain.wall:.2f} | {gain.least:.2f}–{gain.most:.2f} "
            f"| {shown} | {ours:.0f} | {plain:.0f} |",
            flush=True,
        )  # fmt: skip
        row = {"model": model, "J": n_samples, "precision": precision, "MB": ours, "MB_all": plain}
        rows.append({**row, "by_hand": model in BY_HAND, **gain._asdict()})
        if options.output is not None:
            content = {"machine": {**machine(), "threads": options.threads}, "repeats": options.repeats, "rows": rows}
            options.output.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
