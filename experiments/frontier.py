"""The frontier of explained variance against mean active count: ours, three autoencoders, OMP and FISTA.

python -m experiments.frontier --data IMAGES.mat --components 256 --active 6,12,26,50 --workers 16 --out OUT
python -m experiments.frontier --data IMAGES.mat --sparsity 1,2,5,10,20,50 --methods hard-gaussian --out OUT
python -m experiments.frontier --quick --out OUT          # photographs, a few minutes on two cores
python -m experiments.frontier --plot --out OUT           # tables and figures of all finished cells

Each cell (data, method, count, seed) is a JSON file in OUT/cells; finished ones are never computed again. The
environment's OMP_NUM_THREADS is kept, where it is set.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from experiments.frontier_cell import OURS, Cell, complete
from experiments.frontier_report import write_report
from experiments.workers import at_least, names_of, threads_of
from softspike.fitting import pick_device
from softspike.methods import METHODS as ALL

METHODS = (OURS, "batchtopk", "jumprelu", "topk")


@dataclass(frozen=True)
class _Job:
    cell: Cell
    folder: Path
    device: str
    solver_patches: int
    compiled: bool
    n_threads: int | None  # None: as the environment says


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    (options.out / "cells").mkdir(parents=True, exist_ok=True)
    if not options.plot:
        _run(_jobs(options), options.workers)
    for path in write_report(options.out):
        print(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.frontier", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", default="photographs", help="'photographs', or a path of the Olshausen–Field images (.mat or .npy)")
    add("--components", type=at_least(2), default=256)
    add("--active", type=_numbers, default=[6, 12, 26, 50], help="mean counts of active components")
    add("--sparsity", type=_numbers, help="percentages instead of counts; no rivals are solved for then")
    add("--methods", type=names_of(ALL), default=list(METHODS), help=f"of {', '.join(ALL)}; with commas")
    add("--steps", type=at_least(1), default=6000)
    add("--batch", type=at_least(1), default=1024)
    add("--learning-rate", type=float, help="for all methods; their own by default")
    add("--encoder-steps", type=at_least(1), default=5)
    add("--rounds", type=at_least(0), default=20, help="of correction of our supports")
    add("--refits", type=at_least(0), default=200, help="of our dictionary, after training; at most")
    add("--positive", action="store_true", help="codes ≥ 0; no rivals are solved for then")
    add("--asked", type=float, default=1.0, help="of each count, what our method is asked for")
    add("--seeds", type=_numbers, default=[0])
    add("--device", default="auto")
    add("--workers", type=at_least(1), default=1, help="processes, each with its own cells")
    add("--solver-patches", type=at_least(1), default=4000, help="unseen patches on which OMP and FISTA are solved")
    add("--compile", action="store_true", help="torch.compile the encoder: fewer kernels on a GPU")
    add("--quick", action="store_true", help="few patches, few steps, two counts")
    add("--plot", action="store_true", help="only the tables and figures of what is finished")
    add("--out", type=Path, required=True)
    return parser


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _jobs(options: argparse.Namespace) -> list[_Job]:
    device = str(pick_device(options.device))
    counts, patches = options.active, options.solver_patches
    steps, batch, size = options.steps, options.batch, {}
    if options.quick:
        counts, steps, batch, patches = [6, 26], 400, 256, 500
        size = {"n_train": 8000, "n_valid": 2000}
    if options.sparsity:
        counts, patches = [share / 100 * options.components for share in options.sparsity], 0
    if options.positive:
        patches = 0
    cells = [
        Cell(
            options.data, options.components, method, count, int(seed), steps, batch,
            options.learning_rate, options.encoder_steps, options.rounds, options.refits, options.asked,
            positive=options.positive, **size,
        )
        for seed in options.seeds for method in options.methods for count in counts
    ]  # fmt: skip
    folder, n_threads = options.out / "cells", threads_of(options.workers)
    return [_Job(cell, folder, device, patches, options.compile, n_threads) for cell in cells]


def _run(jobs: list[_Job], workers: int) -> None:
    if workers == 1:
        for job in jobs:
            print(_work(job), flush=True)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for line in pool.imap_unordered(_work, jobs):
            print(line, flush=True)


def _work(job: _Job) -> str:
    if job.n_threads is not None:
        torch.set_num_threads(job.n_threads)
    result = complete(job.cell, job.folder, job.device, job.solver_patches, job.compiled)
    figures = f"{result['active']:.2f} active, explained variance {result['explained_variance']:.4f}"
    return f"{job.cell.name}: {figures}, {100 * result['dead']:.1f} % dead, {result['seconds']:.0f} s"


if __name__ == "__main__":
    main()
