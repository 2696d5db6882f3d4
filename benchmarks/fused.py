"""Fused training of the paper's models on a GPU: step times, memory, growth, whole trainings, and their quality.

    python -m benchmarks.fused -o results.json --olshausen images.npy [--only times growth fista_whole starts …]

Times are medians over epochs of replayed graphs, in µs, with the least and the most of them. `floor_us` is the roofline
of a step (`benchmarks.floor`). Parts that are asked for take the place of what the file holds of them, and all others
stay, so that several commands write one file. `seconds` says how long each part took.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from benchmarks.floor import Rates, floor, loads_of, measured_rates
from benchmarks.gpu import gpu_name
from benchmarks.timing import plain_us
from benchmarks.whole_runs import VARIATIONAL, fista_whole, quality, starts, table1
from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain
from softspike.train.fused.engine import FusedRun, prepare

LAPLACIAN = "thresholded-laplacian"
GAMMA = f"{LAPLACIAN}-gamma"
Rows = Iterator[tuple[str, dict[str, Any]]]  # the name of a list in the file, and a row of it
rates = cache(measured_rates)


def coders_of(
    methods: list[str], samples: list[int], seeds: list[int], study: Study
) -> tuple[list[Any], Any, list[int]]:
    built = [
        (build_published(PUBLISHED[method], study, SCRIPTS, BestOf(j), seed), seed)
        for method in methods for j in samples for seed in seeds
    ]  # fmt: skip
    return [b.coder for b, _ in built], built[0][0].recipe, [seed for _, seed in built]


def step_time(methods: list[str], samples: list[int], n_seeds: int, **sizes: int) -> dict[str, Any]:
    """Median µs of a step, and peak memory, of so many replicas on random data."""
    study = Study(n_steps=10_000, **sizes)  # type: ignore[arg-type]
    coders, recipe, seeds = coders_of(methods, samples, list(range(n_seeds)), study)
    at = rates()  # before memory is counted
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    rows = TensorRows(torch.randn(40 * study.batch_size, study.n_features))
    run = prepare(coders, rows, recipe, seeds, "cuda")
    times = epoch_times(run)
    gib = torch.cuda.max_memory_allocated() / 2**30
    return {"methods": methods, "J": samples, "replicas": len(coders), **sizes, **row_of(run, study, times, gib, at)}


def epoch_times(run: FusedRun, n: int = 7) -> list[float]:
    """µs per step of each of so many epochs, after two that compile and record."""
    times = []
    for epoch in range(-2, n):
        start = time.perf_counter()
        tally = run.run_epoch()
        if run.step.data.is_cuda:
            torch.cuda.synchronize()
        if epoch >= 0:
            times.append((time.perf_counter() - start) / tally.steps * 1e6)
    return times


def row_of(run: FusedRun, study: Study, times: list[float], gib: float, at: Rates) -> dict[str, Any]:
    replicas: Any = run.step.replicas
    loads, step = loads_of(replicas.families), statistics.median(times)
    lowest = floor(study, loads, at)
    return {
        "us": step, "us_per_replica": step / len(loads), "epochs_us": [min(times), max(times)],
        "spread": max(times) / min(times), "GiB": gib, **lowest, "of_floor": lowest["floor_us"] / step,
    }  # fmt: skip


def times(_: Path | None) -> Rows:
    for method, j, n in [
        (LAPLACIAN, 20, 1), (LAPLACIAN, 1, 1), (LAPLACIAN, 100, 1), (GAMMA, 20, 1), (LAPLACIAN, 20, 3),
        (LAPLACIAN, 20, 9), (GAMMA, 20, 9), (LAPLACIAN, 20, 27), (LAPLACIAN, 1, 27), (LAPLACIAN, 100, 27),
        (GAMMA, 20, 27),
    ]:  # fmt: skip
        yield "times", step_time([method], [j], n)
    yield "times", step_time(VARIATIONAL, [1, 20], 3)


def growth(_: Path | None) -> Rows:
    for j in (1, 2, 4, 8, 20, 50, 100):
        yield "growth_J", step_time([LAPLACIAN], [j], 1)
    for d in (256, 1024, 4096, 16_384, 65_536):
        yield "growth_d", step_time([LAPLACIAN], [20], 1, n_components=d)
    for b in (100, 256, 1024, 4096):
        yield "growth_B", step_time([LAPLACIAN], [20], 1, batch_size=b)
    for n in (1, 2, 3, 6, 9, 18, 27, 54, 84):
        yield "growth_R", step_time([LAPLACIAN], [20], n)
    yield "large", step_time([LAPLACIAN], [20], 1, n_components=65_536, batch_size=4096)


def plain(_: Path | None) -> Rows:
    yield "plain", {"winner_only_us": plain_us(BestOf(20), True), "all_samples_us": plain_us(BestOfPlain(20), True)}


PARTS: dict[str, Callable[[Path | None], Rows]] = {
    "times": times,
    "growth": growth,
    "plain": plain,
    "fista_whole": lambda path: iter([("fista_whole", fista_whole(path))]),
    "starts": lambda path: iter([("starts", starts())]),
    "quality": lambda path: (("quality", row) for row in quality(path)),
    "table1": lambda path: iter([("table1", table1(path))]),
}
LISTS = {"growth": ("growth_J", "growth_d", "growth_B", "growth_R", "large")}  # of parts that do not write their own


def write(output: Path, only: list[str], about: dict[str, Any], path: Path | None) -> dict[str, Any]:
    """Rows as they come, into what the file holds already of other parts; refuses a file of another machine."""
    results: dict[str, Any] = json.loads(output.read_text()) if output.exists() else dict(about)
    if others := {key: results.get(key) for key, value in about.items() if results.get(key) != value}:
        raise SystemExit(f"{output} has figures of {others}, and here are {about}: give another file with -o")
    for part in only:
        for name in LISTS.get(part, (part,)):
            results.pop(name, None)
        begun = time.perf_counter()
        for name, row in PARTS[part](path):
            results.setdefault(name, []).append(row)
            output.write_text(json.dumps(results, indent=1))
            print(name, json.dumps(row), flush=True)
        results.setdefault("seconds", {})[part] = time.perf_counter() - begun
        if rates.cache_info().currsize:
            results["rates"] = rates()._asdict()
        output.write_text(json.dumps(results, indent=1))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("fused.json"))
    parser.add_argument("--olshausen", type=Path, help="IMAGES.mat or npy, for quality, FISTA and Table 1")
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    needing = [part for part in options.only if part in ("quality", "table1")]
    if needing and options.olshausen is None:
        parser.error(
            f"{' and '.join(needing)}: --olshausen is needed, the path of the images; or choose parts with --only"
        )
    about = {"device": gpu_name(parser), "torch": torch.__version__}
    write(options.output, options.only, about, options.olshausen)


if __name__ == "__main__":
    main()
