"""What optimisations of training on a GPU are worth: each switched off alone, beside the step that has it, in one run.

    python -m benchmarks.ablation -o ablation.json [--only plain graph update stream scoring]

The paper's model and recipe, thresholded Laplacian, batches of 100, d = 256, on random data. Two variants take turns;
times are medians over turns after both have warmed up, in µs per step, or per launch where a kernel is timed alone.
Results are written as they come.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.written import WrittenGradients
from softspike.data import TensorRows
from softspike.kernels.sampling import Resident, Tiled, Timing, score_samples, scoring_tiles
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain, Objective
from softspike.train import Progress, train
from softspike.train.fused.engine import FusedRun, prepare
from softspike.train.fused.step import Aside, Step

LAPLACIAN = PUBLISHED["thresholded-laplacian"]
EPOCH, HORIZON = 200, 20_000  # steps


def fused(
    device: str, replicas: int, n_samples: int = 20, study: Study = Study(n_steps=HORIZON), per_epoch: int = EPOCH
) -> FusedRun:
    built = [build_published(LAPLACIAN, study, SCRIPTS, BestOf(n_samples), seed) for seed in range(replicas)]
    rows = TensorRows(torch.randn(per_epoch * study.batch_size, study.n_features))
    return prepare([b.coder for b in built], rows, built[0].recipe, list(range(replicas)), device)


def rerun(run: FusedRun, replicas: int, kind: type[Step] | None = None, ahead: int = 20) -> FusedRun:
    """The same step, or one of another kind over the same replicas, launched in another way."""
    step: Any = run.step
    if kind is not None:
        named = ("replicas", "data", "order", "order_of", "keys", "rates", "warm_ups", "temperatures")
        step = kind(*(getattr(step, name) for name in named), step.inertia, step.precision)
    return FusedRun(step, list(range(replicas)), run.recipe, ahead)


def epochs(run: FusedRun, n: int = 2) -> float:
    """µs per step of n epochs; the host prepares the next order while the device works."""
    start, steps = time.perf_counter(), 0
    for _ in range(n):
        steps += run.run_epoch().steps
    if run.step.data.is_cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e6


def in_turns(variants: dict[str, Callable[[], float]], turns: int = 5) -> dict[str, Any]:
    """The median of each variant's figures, the lowest and the highest; a first turn is not counted."""
    for variant in variants.values():
        variant()
    figures = [{name: variant() for name, variant in variants.items()} for _ in range(turns)]
    columns = {name: [row[name] for row in figures] for name in variants}
    return {name: {"us": statistics.median(us), "least": min(us), "most": max(us)} for name, us in columns.items()}


def side_by_side(runs: dict[str, FusedRun]) -> dict[str, Any]:
    return in_turns({name: partial(epochs, run) for name, run in runs.items()})


class Stopwatch:
    """An observer that notes the time of every log, by which the device has finished: the loss was looked at."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def logged(self, progress: Progress) -> None:
        self.times.append(time.perf_counter())

    def saved(self, progress: Progress) -> None: ...


def plain_us(
    objective: Objective, captured: bool, device: str = "cuda", n_steps: int = 500, study: Study = Study()
) -> float:
    """Median µs of a step of one model by the plain loop, over hundreds after the first hundred, which record."""
    coder, recipe = build_published(LAPLACIAN, study, SCRIPTS, objective, 0)
    rows = TensorRows(torch.randn(4000, study.n_features, device=device))
    recipe = replace(recipe, n_steps=n_steps, log_every=n_steps // 5, save_every=n_steps)
    watch = Stopwatch()
    train(coder.to(device), rows, recipe, device=device, observers=[watch], captured=captured)
    between = [b - a for a, b in zip(watch.times[:-1], watch.times[1:], strict=True)]
    return statistics.median(between) / (n_steps // 5) * 1e6


def plain(device: str) -> Iterator[dict[str, Any]]:
    """The winner's gradient only against all J differentiated, steps recorded as one launch and not; and memory."""
    for n_samples in (20, 100):
        row: dict[str, Any] = {"J": n_samples}
        for name, objective in (("winner only", BestOf(n_samples)), ("all J", BestOfPlain(n_samples))):
            for captured in (True, False):
                torch.cuda.reset_peak_memory_stats()
                us = plain_us(objective, captured, device)
                gib = torch.cuda.max_memory_allocated() / 2**30
                row[f"{name}, {'recorded' if captured else 'kernel by kernel'}"] = {"us": us, "GiB": gib}
        yield row


def graph(device: str) -> Iterator[dict[str, Any]]:
    """Twenty steps a launch, one step a launch, one kernel a launch."""
    for replicas in (1, 27):
        run = fused(device, replicas)
        ways = {"20 steps": run, "1 step": rerun(run, replicas, ahead=1), "kernels": rerun(run, replicas, ahead=0)}
        yield {"replicas": replicas, **side_by_side(ways)}


def update(device: str) -> Iterator[dict[str, Any]]:
    """Weights moved by the tile that computes their gradient, against gradients in memory and torch's fused SGD."""
    torch.backends.cuda.matmul.allow_tf32 = True
    for replicas in (1, 27):
        run = fused(device, replicas)
        other = rerun(run, replicas, WrittenGradients)
        yield {"replicas": replicas, **side_by_side({"tile": run, "written": other})}
    torch.backends.cuda.matmul.allow_tf32 = False


def stream(device: str) -> Iterator[dict[str, Any]]:
    """Descents beside the backward pass, on a second stream, against one after the other."""
    for replicas in (1, 27):
        run = fused(device, replicas)
        other = rerun(run, replicas, Step)
        other.step.aside = Aside(torch.device("cpu"))  # type: ignore[union-attr]
        yield {"replicas": replicas, **side_by_side({"beside": run, "in turn": other})}


def scoring(device: str) -> Iterator[dict[str, Any]]:
    """The scoring kernel alone: atoms resident or read tile by tile, at most 128 registers or any, bfloat16 or tf32."""
    for replicas, n_samples in ((1, 20), (1, 100), (27, 20)):
        run = fused(device, replicas, n_samples)
        run.run_epoch()
        yield {"replicas": replicas, "J": n_samples, **in_turns(scorers(run.step))}


def scorers(step: Any, at_once: int = 20) -> dict[str, Callable[[], float]]:
    f, r = step.replicas.families[0], step.replicas
    f.heads.normal_(0, 0.3)  # where a step left slopes
    low, (n, n_rows, _) = r.atoms.bfloat16(), r.x.shape
    few = -(-n_rows // 16) * (f.scores.shape[1] // 4) * n < 132
    tiled, free = (Tiled(4, 64), Tiled(4, 64)) if few else (Tiled(16, 32, registers=128), Tiled(16, 32))
    best = scoring_tiles(f.law, low, n_rows, f.scores.shape[1])
    assert isinstance(best, Resident)
    clock = torch.zeros(4, dtype=torch.int32, device=r.x.device)
    at = Timing(
        clock, step.keys, step.warm_ups.values, step.warm_ups.row_of, step.temperatures.values, step.temperatures.row_of
    )

    def scorer(atoms: Tensor, tiles: Tiled | Resident) -> Callable[[], float]:
        def launch() -> None:
            for _ in range(at_once):
                score_samples(f.law, f.heads, atoms, r.x, f.scores, f.settings, at, step.precision, tiles)

        return timer(launch, at_once)

    variants = {"resident, bfloat16": (low, best), "tiles, bfloat16": (low, tiled)}
    if tiled != free:
        variants["tiles, bfloat16, any registers"] = (low, free)
    variants["tiles, tf32"] = (r.atoms, tiled)
    return {name: scorer(*variant) for name, variant in variants.items()}


def timer(launch: Callable[[], None], times: int) -> Callable[[], float]:
    """µs of one of so many, replayed as a graph where there is a GPU."""
    launch()
    work, again = launch, 1
    if torch.cuda.is_available():
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            launch()
        work, again = recorded.replay, 10

    def measured() -> float:
        start = time.perf_counter()
        for _ in range(again):
            work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / (again * times) * 1e6

    return measured


PARTS = {part.__name__: part for part in (plain, graph, update, stream, scoring)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("ablation.json"))
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    begun = time.perf_counter()
    for name in options.only:
        for row in PARTS[name]("cuda"):
            results.setdefault(name, []).append(row)
            results["seconds"] = time.perf_counter() - begun
            options.output.write_text(json.dumps(results, indent=1))
            print(f"{results['seconds']:.0f} s", name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
