"""Ground truth: how much of a known dictionary, of known codes and of known supports is found.

    python -m experiments.recovery a|b|wide|c|d|…|n [--seeds 5] [--first-seed 0] [--noise 0.0] --out FOLDER [--plot]
    python -m experiments.recovery c --device cuda --workers 16 --out FOLDER --plot

(a) 16 sources in 8 dimensions and (b) 64 in 32, 3 active, 1,024 rows to learn from and 1,024 to test, no noise;
(wide) 256 in 64, 6 active; (c) 1,024 in 128 with power-law activity and correlated pairs, 10 active on average.
On the support codes are |N(0, 1)|, so every method is asked for non-negative codes. For calibration: (d) 40 in 20,
4 active, (e) 96 in 32, 5 active, (f) 160 in 64, 8 active, signed codes, 6,000 rows; (g) 30 in 30, 6 active, and (h) 40
in 40, 12 active, signed, complete dictionaries, 10,000 rows; signed values of other laws: (i) 40 in 24, 4 active, 6,000
rows, and (j) 60 in 30, 3 active, 8,000 rows, uniform in ±[½, 3/2], (l) 48 in 32, 5 active, 8,000 rows, Laplacian;
(k) 96 in 48, 6 active, 20,000 rows; rates ∝ i^−0.6 and few rows: (m) 32 in 32, 4 active on average, 4,000 rows, and
(n) 30 in 20, 3 active, 3,000 rows. Problems drawn at random: `experiments.intervals`. Nothing is tuned per seed or per
method: n_active is the true mean count (times --asked), the rest as in `PROBLEMS`. A finished cell is kept as JSON in
FOLDER/cells and not run again; the time each part of it took stands in it. The environment's OMP_NUM_THREADS is kept,
where it is set.
"""

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from experiments.recovery_cell import OURS, Cell, complete
from experiments.recovery_problems import PROBLEMS
from experiments.recovery_summary import summarise
from experiments.workers import at_least, names_of, threads_of
from softspike.fitting import pick_device
from softspike.methods import METHODS as ALL

METHODS = ("fista", OURS, "topk", "batchtopk", "jumprelu")  # the slowest first, so that workers end together


class _Job(NamedTuple):
    cell: Cell
    folder: Path
    device: str
    n_threads: int | None  # None: as the environment says


def main(arguments: Sequence[str] | None = None) -> None:
    parser = _parser()
    options = parser.parse_args(arguments)
    _check_count(parser, options.problem, options.asked)
    steps = options.steps or PROBLEMS[options.problem].steps
    cells = [
        Cell(options.problem, method, seed, options.noise, steps, options.encoder_steps, options.refits, options.asked)
        for method in options.methods for seed in range(options.first_seed, options.first_seed + options.seeds)
    ]  # fmt: skip
    folder = options.out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    device, n_threads = str(pick_device(options.device)), threads_of(options.workers)
    for line in _run([_Job(c, folder, device, n_threads) for c in cells], options.workers):
        print(line, flush=True)
    print(f"{time.perf_counter() - began:.0f} s in all")
    found = {m: [complete(c, folder, options.device) for c in cells if c.method == m] for m in options.methods}
    problem = PROBLEMS[options.problem]
    settings = {"steps": steps, "encoder_steps": options.encoder_steps, "noise": options.noise, "seeds": options.seeds}
    settings |= {"refits": options.refits, "asked": options.asked}
    about = {"problem": options.problem, "known": problem.known, "bar": problem.bar}
    fresh = f"-s{options.first_seed}" if options.first_seed else ""
    target = options.out / f"recovery_{cells[0].setting}{fresh}.json"
    page = {**about, **settings, **({"first_seed": options.first_seed} if fresh else {})}
    known = json.loads(target.read_text()) if target.exists() else {}
    others = known["methods"] if {**known, "methods": None} == {**page, "methods": None} else {}
    page["methods"] = {**others, **summarise(found)}  # methods of an earlier call stay
    target.write_text(json.dumps(page, indent=1))
    if options.plot:
        from experiments.recovery_plot import plot, plot_atoms

        plot(found, problem.known, target.with_suffix(".png"))
        plot_atoms(found, target.with_name(f"{target.stem}-atoms.png"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.recovery", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("problem", choices=PROBLEMS)
    add("--seeds", type=at_least(1), default=5, help="how many")
    add("--first-seed", type=at_least(0), default=0)
    add("--noise", type=float, default=0.0)
    add("--steps", type=at_least(1), help="training steps, for every method")
    add("--encoder-steps", type=at_least(1), default=5)
    add("--refits", type=at_least(0), default=200, help="of our dictionary, after training; at most")
    add("--asked", type=float, default=1.0, help="times the true count of active components, for every method")
    add("--methods", type=names_of(ALL), default=list(METHODS), help=f"of {', '.join(ALL)}; with commas")
    add("--device", default="auto")
    add("--workers", type=at_least(1), default=1, help="processes, each with its own cells")
    add("--out", type=Path, required=True)
    add("--plot", action="store_true", help="also draw the reliability diagram and the atoms")
    return parser


def _check_count(parser: argparse.ArgumentParser, problem: str, asked: float) -> None:
    """End with a sentence where so many times the true count are none, or more than there are sources."""
    true = PROBLEMS[problem]
    sources = true.sample(1, 0, 0.0).codes.shape[1]
    if not 0 < asked * true.n_active < sources:
        parser.error(
            f"--asked is {asked:g}, which is {asked * true.n_active:g} active, expected more than 0 and fewer than the "
            f"{sources} sources of {problem}"
        )


def _run(jobs: list[_Job], workers: int) -> Iterator[str]:
    if workers == 1:
        yield from map(_work, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(_work, jobs, chunksize=1)


def _work(job: _Job) -> str:
    if job.n_threads is not None:
        torch.set_num_threads(job.n_threads)
    result = complete(job.cell, job.folder, job.device)
    return f"{job.cell.name}: " + ", ".join(f"{k} {v:.4g}" for k, v in result.items() if isinstance(v, float | int))


if __name__ == "__main__":
    main()
