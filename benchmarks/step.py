"""A training step of the library beside the same arithmetic written out by hand, in one run: python -m benchmarks.step

The target is a ratio of at most 1.3 for the default method. Both sides take turns of a few steps, so that whatever else
the machine does falls on both; a ratio is that of two neighbouring turns, and its spread is shown.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.bare import RIVALS, Setting
from softspike import SparseCoder
from softspike.data import ArrayRows, StandardisedRows, Standardiser
from softspike.fitting import Fitted, prepare
from softspike.methods import Plan, method_named
from softspike.report.table import print_table
from softspike.train import batch_rows, step_random, train

TARGET = 1.3


class Sides(NamedTuple):
    library: Callable[[int, int], object]  # does the steps from … to …
    bare: Callable[[int, int], object]


def sides(method: str, data: np.ndarray, setting: Setting, batch: int) -> Sides:
    """Both sides from the same weights; the library trains as `fit` does, from an array, standardising as it goes."""
    defaults = SparseCoder().get_params()
    plan = Plan(
        setting.n_features, setting.n_components, setting.n_active / setting.n_components, setting.n_steps, batch,
        n_samples=1, encoder_steps=defaults["encoder_steps"],
    )  # fmt: skip
    rows = ArrayRows(data)
    fitted = prepare(method_named(method), plan, 0, torch.device("cpu"), Standardiser.fit(rows))
    check(method, fitted, rows, setting)
    standard = StandardisedRows(rows, fitted.standardiser)
    bare_step = RIVALS[method](weights_of(fitted), setting)
    tensor, random = standard.take(torch.arange(len(rows))), torch.Generator().manual_seed(0)
    order = torch.randperm(len(rows))

    def library(first: int, last: int) -> None:
        recipe = replace(fitted.recipe, n_steps=last)
        train(fitted.coder, standard, recipe, optimizer=fitted.optimizer, start=first)

    def bare(first: int, last: int) -> None:
        for t in range(first, last):
            begin = t * batch % (len(order) - batch)
            bare_step(tensor[order[begin : begin + batch]], t, random)

    return Sides(library, bare)


def weights_of(fitted: Fitted) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in fitted.coder.state_dict().items()}


def check(method: str, fitted: Fitted, rows: ArrayRows, setting: Setting, n_steps: int = 3) -> None:
    """A few steps of both sides on the same rows and random numbers must end in the same dictionary."""
    start, other = weights_of(fitted), weights_of(fitted)
    standard = StandardisedRows(rows, fitted.standardiser)
    step, batch = RIVALS[method](other, setting), fitted.recipe.batch_size
    for t in range(n_steps):
        step(standard.take(batch_rows(0, t, len(rows), batch)), t, step_random(0, t))
    train(fitted.coder, standard, replace(fitted.recipe, n_steps=n_steps), optimizer=fitted.optimizer)
    name = "generator.weight"
    ours, theirs = fitted.coder.state_dict()[name], other[name].detach()
    difference = float((ours - theirs).norm() / (ours - start[name]).norm())
    if difference > 1e-2:
        raise SystemExit(f"{method}: the bare loop no longer does the same arithmetic (difference {difference:.2g})")


def measure(both: Sides, repeats: int, turn: int) -> np.ndarray:
    """Milliseconds per step, (repeats, 2), after one turn to warm up; who goes first alternates."""
    times = np.empty((repeats + 1, 2))
    for repeat in range(repeats + 1):
        for side in (0, 1) if repeat % 2 else (1, 0):
            begun = time.perf_counter()
            both[side](3 + repeat * turn, 3 + (repeat + 1) * turn)
            times[repeat, side] = (time.perf_counter() - begun) / turn * 1e3
    return times[1:]


def line(method: str, times: np.ndarray) -> tuple[str, str, str]:
    middle, ratios = np.median(times, axis=0), times[:, 0] / times[:, 1]
    low, high = np.quantile(ratios, [0.25, 0.75])
    figures = f"library {middle[0]:.2f} ms, bare {middle[1]:.2f} ms; half of the ratios in {low:.2f} to {high:.2f}"
    return method, f"{np.median(ratios):.2f}", figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--components", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--turn", type=int, default=20, help="steps before the other side takes its turn")
    parser.add_argument("methods", nargs="*", default=list(RIVALS), help=f"of {', '.join(RIVALS)}")
    given = parser.parse_args()
    setting = Setting(given.features, given.components, 0.1 * given.components, n_steps=20_000)
    data = np.random.default_rng(0).standard_normal((20_000, given.features), dtype=np.float32)
    lines = []
    for method in given.methods:
        times = measure(sides(method, data, setting, given.batch), given.repeats, given.turn)
        lines.append(line(method, times))
    default = SparseCoder().method
    title = f"a training step, library over bare, {torch.get_num_threads()} threads (target ≤ {TARGET} for {default})"
    print_table(title, lines)


if __name__ == "__main__":
    main()
