"""Intervals and probabilities on problems that nobody chose.

    python -m experiments.intervals [--first 0] [--problems 64] [--workers 16] --out FOLDER

Draws the sizes, sparsity, noise, values and rates of each problem at random (`recovery_problems.drawn`), trains the
default model once, and measures what its 90 % intervals cover, the calibration error of its probabilities, and how much
of the dictionary it found. A finished problem is kept in FOLDER/cells and not run again.
"""

import argparse
import json
import multiprocessing
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.recovery_cell import OURS, Cell, complete
from experiments.recovery_problems import drawn
from experiments.workers import at_least, threads_of

KEPT = ("coverage_active", "coverage_active_found", "ece", "brier", "atoms_share", "f1", "active", "dead_training")
FOUND = 0.9  # of the atoms: a problem that was learned


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    folder = options.out / "cells"
    folder.mkdir(parents=True, exist_ok=True)
    numbers = range(options.first, options.first + options.problems)
    work = partial(_work, steps=options.steps, folder=folder, n_threads=threads_of(options.workers))
    if options.workers == 1:
        rows = list(map(work, numbers))
    else:
        with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
            rows = list(pool.imap(work, numbers, chunksize=1))
    page = {"problems": rows, "summary": summary(rows)}
    (options.out / "intervals.json").write_text(json.dumps(page, indent=1))
    print(json.dumps(page["summary"], indent=1))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="experiments.intervals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--first", type=at_least(0), default=0, help="number of the first problem")
    parser.add_argument("--problems", type=at_least(1), default=64, help="how many")
    parser.add_argument("--steps", type=at_least(1), default=3000, help="of training")
    parser.add_argument("--workers", type=at_least(1), default=1, help="processes, each with its own problems")
    parser.add_argument("--out", type=Path, required=True)
    return parser


def _work(number: int, steps: int, folder: Path, n_threads: int | None) -> dict[str, Any]:
    if n_threads is not None:
        torch.set_num_threads(n_threads)
    setting = drawn(number)
    found = complete(Cell(f"drawn-{number}", OURS, number, setting.noise, steps), folder, "cpu")
    row = {"number": number, **setting._asdict(), **{name: found[name] for name in KEPT}}
    print(json.dumps(row), flush=True)
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of all problems, of those of which nine atoms in ten were found, and with and without noise: how many are within
    85–95 %, and where the others are."""
    parts = {
        "all": rows,
        "learned": [row for row in rows if row["atoms_share"] >= FOUND],
        "with noise": [row for row in rows if row["noise"] > 0],
        "without noise": [row for row in rows if row["noise"] == 0],
    }
    return {name: _described(some) for name, some in parts.items() if some}


def _described(rows: list[dict[str, Any]]) -> dict[str, Any]:
    covered, error = (np.array([row[name] for row in rows]) for name in ("coverage_active", "ece"))
    quantiles = np.quantile(covered, [0.05, 0.25, 0.5, 0.75, 0.95]).round(3).tolist()
    return {
        "problems": len(rows),
        "within": int(((covered >= 0.85) & (covered <= 0.95)).sum()),
        "below": int((covered < 0.85).sum()),
        "above": int((covered > 0.95).sum()),
        "mean": round(float(covered.mean()), 3),
        "quantiles": dict(zip(("5 %", "25 %", "50 %", "75 %", "95 %"), quantiles, strict=True)),
        "calibration_error_above_0.03": int((error > 0.03).sum()),
    }


if __name__ == "__main__":
    main()
