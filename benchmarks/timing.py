"""Times of training steps and kernels on a GPU: medians of variants that take turns, in µs."""

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, Objective
from softspike.train import Progress, train
from softspike.train.fused.engine import FusedRun, prepare
from softspike.train.fused.step import Step

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
