"""Training steps with the best of J samples on a CPU: the winner's gradient only, against all J differentiated.

    python -m benchmarks.best_of [--threads 2] [--repeats 7] [--precision bfloat16]

The paper's model: batches of 100, D = d = 256, thresholded Laplacian once it is warm, published recipe; with its MLP
encoder, and with the linear and the unrolled one; and with Gamma levels. All variants take turns in one process, so
that what else the machine does hits each. All J are differentiated in two ways: by a bare loop of torch's layers,
autograd and SGD, and by `BestOfPlain` in our own loop, with our encoder and optimiser. "At best" is the gain over the
bare loop of a step by autograd with one sample in place of the winner of J: what drawing and scoring for nothing would
give. Memory is what training adds to a process that has loaded everything. With --precision bfloat16 all but the bare
loop multiply in bfloat16.
"""

import argparse
import math
import resource
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import SGD

from softspike.choices import precision_named
from softspike.data import TensorRows
from softspike.encoder import Encoder, LinearEncoder, MLPEncoder, UnrolledEncoder
from softspike.layers import affine_relu_plainly
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.model import VariationalCoder
from softspike.objective import BestOf, BestOfPlain, Objective
from softspike.posterior import LaplacePosterior
from softspike.schedule import Constant, Scaled
from softspike.train import FullPrecision, Precision, Recipe, train

ROWS, WIDTH, SETTLING = 1000, 256, 100  # steps before the first that is timed: by then a tenth of the codes is active
CALM = 0.01  # of the published rates, which were made for the MLP: with other encoders they diverge
Run = Callable[[], None]


class BareMLP(Encoder):
    """The perceptron as torch's layers, one after the other."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.layers, self.width = encoder.layers, encoder.width

    def forward(self, x: Tensor) -> Tensor:
        return affine_relu_plainly(x, [layer for layer in self.layers if isinstance(layer, nn.Linear)])


def built(objective: Objective, model: str) -> VariationalCoder:
    method = "thresholded-laplacian-gamma" if model == "gamma" else "thresholded-laplacian"
    coder: Any = build_published(PUBLISHED[method], Study(), SCRIPTS, objective).coder
    if model == "linear":
        coder.encoder = LinearEncoder(WIDTH)
    elif model == "unrolled":
        coder.encoder = UnrolledEncoder(coder.generator, coder.threshold.level, n_steps=4, rate=0.2)
    if model in ("linear", "unrolled"):
        coder.posterior = LaplacePosterior(WIDTH, WIDTH)
        with torch.no_grad():  # exp(−λ/b) = 1/10 from the start
            coder.posterior.location.weight.mul_(0.01)
            coder.posterior.log_scale.weight.mul_(0.01)
            coder.posterior.log_scale.bias.fill_(math.log(float(coder.threshold.level.value) / math.log(10)))
    coder.posterior.warm_up = Constant(1.0)
    return coder


def stepper(
    objective: Objective, n_steps: int, model: str = "mlp", bare: bool = False, precision: Precision = FullPrecision()
) -> Run:
    """A function that runs so many training steps of one model, which has settled."""
    coder = built(objective, model)
    if bare and isinstance(coder.encoder, MLPEncoder):
        coder.encoder = BareMLP(coder.encoder)

    def recipe(n: int) -> Recipe:
        made = build_published(PUBLISHED["thresholded-laplacian"], Study(n_steps=n), SCRIPTS, objective).recipe
        share = CALM if model in ("linear", "unrolled") else 1.0
        groups = {name: replace(group, rate=Scaled(group.rate, share)) for name, group in made.groups.items()}
        return replace(made, groups=groups, optimizer=partial(SGD, fused=False) if bare else made.optimizer)

    rows = TensorRows(torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(0)))
    short = recipe(n_steps)
    train(coder, rows, recipe(SETTLING), precision=precision)
    return lambda: train(coder, rows, short, precision=precision) and None


class Gain(NamedTuple):
    """How many times faster our step is than differentiating all J: medians of paired runs, and their range."""

    wall: float  # than the bare loop
    least: float
    most: float
    ours: float  # than BestOfPlain in our loop
    worked: float  # than the bare loop, in processor time
    at_best: float


def ratio(n_samples: int, repeats: int, model: str, precision: Precision, n_steps: int = 20) -> Gain:
    """The gain of the winner-only step."""
    ours = [BestOfPlain(n_samples), BestOf(n_samples), BestOf(1)]
    runs = [stepper(BestOfPlain(n_samples), n_steps, model, bare=True)]
    runs += [stepper(objective, n_steps, model, precision=precision) for objective in ours]
    rounds = []
    for _ in range(repeats):
        walls, works = zip(*(timed(run) for run in runs), strict=True)
        bare, plainly, winner, single = walls
        rounds.append((bare / winner, plainly / winner, works[0] / works[2], bare / single))
    wall, ours, worked, at_best = (statistics.median(column) for column in zip(*rounds, strict=True))
    every = [row[0] for row in rounds]
    return Gain(wall, min(every), max(every), ours, worked, at_best)


def timed(run: Run) -> tuple[float, float]:
    """Seconds on the clock, and of the processors."""
    begun = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begun[0], time.process_time() - begun[1]


def peak(job: tuple[type, int]) -> float:
    """MB that training with this objective adds to a process at its largest, looked at every millisecond."""
    objective, n_samples = job
    torch.set_num_threads(1)
    stepper(BestOf(4), 5)  # loads what is loaded once
    before, seen, done = resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            seen.append(resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    stepper(objective(n_samples), 5)()
    done.set()
    watcher.join()
    return max(seen) - before


def resident() -> float:
    """MB of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--samples", type=int, nargs="*", default=[1, 5, 20, 100])
    parser.add_argument("--models", nargs="*", default=["mlp", "linear", "unrolled", "gamma"])
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    heads = f"{'model':>8} {'J':>4} {'times faster':>13} {'range':>11} {'our loop':>9} {'less CPU':>9} {'at best':>8}"
    print(f"{heads} {'MB, winner only':>16} {'MB, all J':>10}")
    for model in options.models:
        for n_samples in options.samples if model == "mlp" else [20]:
            gain = ratio(n_samples, options.repeats, model, precision_named(options.precision, torch.device("cpu")))
            with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
                ours, plain = pool.map(peak, [(BestOf, n_samples), (BestOfPlain, n_samples)], chunksize=1)
            spread = f"{gain.least:.2f}–{gain.most:.2f}"
            figures = f"{model:>8} {n_samples:4d} {gain.wall:13.2f} {spread:>11} {gain.ours:9.2f} {gain.worked:9.2f}"
            print(f"{figures} {gain.at_best:8.2f} {ours:16.0f} {plain:10.0f}", flush=True)


if __name__ == "__main__":
    main()
