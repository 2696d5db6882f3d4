"""What optimisations of training on a GPU are worth: each switched off alone, beside the step that has it, in one run.

    python -m benchmarks.ablation -o ablation.json [--only plain graph update stream scoring]

The paper's model and recipe, thresholded Laplacian, batches of 100, d = 256, on random data. Two variants take turns;
times are medians over turns after both have warmed up, in µs per step, or per launch where a kernel is timed alone.
Results are written as they come.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.gpu import gpu_name
from benchmarks.timing import fused, in_turns, plain_us, rerun, side_by_side, timer
from benchmarks.written import WrittenGradients
from softspike.kernels.sampling import Resident, Tiled, Timing, score_samples, scoring_tiles
from softspike.objective import BestOf, BestOfPlain
from softspike.train.fused.step import Aside, Step


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


PARTS = {part.__name__: part for part in (plain, graph, update, stream, scoring)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("ablation.json"))
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    results: dict[str, Any] = {"device": gpu_name(parser), "torch": torch.__version__}
    begun = time.perf_counter()
    for name in options.only:
        for row in PARTS[name]("cuda"):
            results.setdefault(name, []).append(row)
            results["seconds"] = time.perf_counter() - begun
            options.output.write_text(json.dumps(results, indent=1))
            print(f"{results['seconds']:.0f} s", name, json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
