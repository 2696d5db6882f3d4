"""Fused training of the paper's models on a GPU: step times, memory, growth, and whether quality moves.

    python -m benchmarks.fused -o results.json [--olshausen images.npy]

Times are medians over epochs of replayed graphs, in µs. `floor` is the roofline of a step: the larger of arithmetic
over the measured rate of a large tf32 product and compulsory bytes over the measured rate of a large copy.
"""

import argparse
import json
import statistics
import time
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import plain_us
from softspike.data import TensorRows
from softspike.data.olshausen import olshausen_patches
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain
from softspike.train import train_in_turn, train_replicas
from softspike.train.fused import train_fused
from softspike.train.fused.engine import prepare

LAPLACIAN = "thresholded-laplacian"
VARIATIONAL = [name for name in PUBLISHED if name != "fista"]


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
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    rows = TensorRows(torch.randn(40 * study.batch_size, study.n_features))
    run = prepare(coders, rows, recipe, seeds, "cuda")
    for _ in range(2):
        run.run_epoch()
    torch.cuda.synchronize()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        tally = run.run_epoch()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / tally.steps * 1e6)
    n, step = len(coders), statistics.median(times)
    return {
        "methods": methods, "J": samples, "replicas": n, **sizes, "us": step, "us_per_replica": step / n,
        "spread": max(times) / min(times), "GiB": torch.cuda.max_memory_allocated() / 2**30,
        **floor(study, n, samples[0], len(run.step.replicas.families[0].readings[0].heads)),
    }  # fmt: skip


RATES: dict[str, float] = {}


def floor(study: Study, replicas: int, n_samples: int, n_heads: int) -> dict[str, float]:
    """FLOP and compulsory bytes of a step: weights read forward and backward, weights and momentum rewritten."""
    widths = [study.n_features, *study.widths, n_heads * study.n_components]
    weights = sum(a * b for a, b in pairwise(widths))
    atoms, b = study.n_features * study.n_components, study.batch_size
    scored = n_samples if n_samples > 1 else 0
    flop = replicas * 2 * b * (3 * weights + (scored + 3) * atoms)
    size = replicas * 4 * (6 * weights + 5 * atoms)
    if not RATES:
        RATES.update(measured_rates())
    us = max(flop / RATES["flop"], size / RATES["bytes"]) * 1e6
    return {"GFLOP": flop / 1e9, "MB": size / 1e6, "floor_us": us}


def measured_rates() -> dict[str, float]:
    """Of a large tf32 product (FLOP/s) and a large copy (bytes/s, read plus written)."""
    a = torch.randn(8192, 8192, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    flop = 2 * 8192**3 / seconds(lambda: a @ a)
    torch.backends.cuda.matmul.allow_tf32 = False
    source = torch.randn(2**28, device="cuda")
    target = torch.empty_like(source)
    return {"flop": flop, "bytes": 2 * 4 * 2**28 / seconds(lambda: target.copy_(source))}


def seconds(work: Any, repeats: int = 10) -> float:
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def patches(path: Path | None) -> Tensor:
    assert path is not None, "quality needs --olshausen"
    return torch.from_numpy(olshausen_patches(path, n_train=20_000, n_valid=1000).train)


QUALITY = [LAPLACIAN, f"{LAPLACIAN}-gamma", "spike-and-slab"]


def trained_loss(job: tuple[str, int, int, bool, Tensor]) -> float:
    """The last epoch's mean training loss (misfit + β·KL) of one model, fused or plain."""
    method, seed, n_steps, fused, data = job
    torch.set_num_threads(1)
    coder, recipe = build_published(PUBLISHED[method], Study(n_steps=n_steps), SCRIPTS, BestOf(20), seed)
    rows = TensorRows(data.cuda())
    train_replicas([coder], rows, recipe, seeds=[seed], device="cuda", engine=train_fused if fused else train_in_turn)
    generator = torch.Generator("cuda").manual_seed(0)
    with torch.no_grad():
        return statistics.mean(
            float(coder.loss(rows.tensor[k : k + 1000], n_steps, generator).total) for k in range(0, 20_000, 1000)
        )


def quality(path: Path | None, n_steps: int = 4000, seeds: int = 3) -> list[dict[str, Any]]:
    """Losses of plain and fused training side by side, seed by seed."""
    data = patches(path)
    jobs = [(m, s, n_steps, fused, data) for m in QUALITY for fused in (False, True) for s in range(seeds)]
    with get_context("spawn").Pool(12) as pool:
        losses = pool.map(trained_loss, jobs, chunksize=1)
    rows = []
    for number, method in enumerate(QUALITY):
        part = losses[number * 2 * seeds : (number + 1) * 2 * seeds]
        rows.append({"method": method, "steps": n_steps, "plain": part[:seeds], "fused": part[seeds:]})
    return rows


def fista_time() -> dict[str, float]:
    """Steps per second of training FISTA dictionaries on random data, three seeds together."""
    study = Study(n_steps=100_000)
    coders, recipe, seeds = coders_of(["fista"], [1], [0, 1, 2], study)
    for coder in coders:
        coder.penalty.fill_(5.0)
    run = prepare(coders, TensorRows(torch.randn(4000, 256)), recipe, seeds, "cuda")
    run.run_epoch()
    torch.cuda.synchronize()
    start = time.perf_counter()
    steps = sum(run.run_epoch().steps for _ in range(5))
    torch.cuda.synchronize()
    return {"us": (time.perf_counter() - start) / steps * 1e6, "gap": float(run.step.replicas.gaps.max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("fused.json"))
    parser.add_argument("--olshausen", type=Path)
    parser.add_argument("--only", nargs="*", default=["times", "growth", "plain", "fista", "quality"])
    options = parser.parse_args()
    results: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}

    def keep(name: str, row: Any) -> None:
        results.setdefault(name, []).append(row)
        options.output.write_text(json.dumps(results, indent=1))
        print(name, json.dumps(row), flush=True)

    gamma = f"{LAPLACIAN}-gamma"
    if "times" in options.only:
        for method, j, n in [
            (LAPLACIAN, 20, 1), (LAPLACIAN, 1, 1), (LAPLACIAN, 100, 1), (gamma, 20, 1), (LAPLACIAN, 20, 3),
            (LAPLACIAN, 20, 9), (gamma, 20, 9), (LAPLACIAN, 20, 27), (LAPLACIAN, 1, 27), (LAPLACIAN, 100, 27),
            (gamma, 20, 27),
        ]:  # fmt: skip
            keep("times", step_time([method], [j], n))
        keep("times", step_time(VARIATIONAL, [1, 20], 3))
    if "growth" in options.only:
        for j in (1, 2, 4, 8, 20, 50, 100):
            keep("growth_J", step_time([LAPLACIAN], [j], 1))
        for d in (256, 1024, 4096, 16_384, 65_536):
            keep("growth_d", step_time([LAPLACIAN], [20], 1, n_components=d))
        for b in (100, 256, 1024, 4096):
            keep("growth_B", step_time([LAPLACIAN], [20], 1, batch_size=b))
        for n in (1, 2, 3, 6, 9, 18, 27, 54, 84):
            keep("growth_R", step_time([LAPLACIAN], [20], n))
        keep("large", step_time([LAPLACIAN], [20], 1, n_components=65_536, batch_size=4096))
    if "plain" in options.only:
        keep("plain", {"winner_only_us": plain_us(BestOf(20), True), "all_samples_us": plain_us(BestOfPlain(20), True)})
    if "fista" in options.only:
        keep("fista", fista_time())
    if "quality" in options.only:
        for row in quality(options.olshausen):
            keep("quality", row)
    results["rates"] = RATES
    options.output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
