"""Training steps with the best of J samples on a CPU: the winner's gradient only, against all J differentiated.

    python -m benchmarks.best_of [-o results.json] [--threads 2] [--repeats 7] [--precision float32 bfloat16]

The paper's model: batches of 100, D = d = 256, thresholded Laplacian once it is warm, published recipe; with its MLP
encoder, and with the linear and the unrolled one; and with Gamma levels. All variants take turns in one process, so
that what else the machine does hits each. All J are differentiated in two ways: by a bare loop of torch's layers,
autograd and SGD, and by `BestOfPlain` in our own loop, with our encoder and optimiser. Two columns say what would be
possible, both over the bare loop: "at best" is a step by autograd with one sample in place of the winner of J, and
"bound" is nothing but the products with all weights, forwards and backwards, and their descent, which every step must
do. Memory is what training adds to a process that has loaded everything. In bfloat16 all but the bare loop multiply in
bfloat16; "our loop" is then the comparison at equal precision.
"""

import argparse
import json
import math
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import SGD

from softspike.bench.job import machine
from softspike.choices import precision_named
from softspike.coder import Loss
from softspike.data import TensorRows
from softspike.encoder import Encoder, LinearEncoder, MLPEncoder, UnrolledEncoder
from softspike.layers import affine_relu_plainly
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.model import VariationalCoder
from softspike.objective import BestOf, BestOfPlain, Objective
from softspike.posterior import LaplacePosterior
from softspike.schedule import Constant, Scaled
from softspike.train import FullPrecision, Precision, Recipe, train
from softspike.train.direct import DirectStep, direct
from softspike.train.step import Step
from softspike.train.team import Alone

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


class Products(DirectStep):
    """What every step of this model must do and nothing else: its products with all weights, and their descent."""

    def _gradients(self, x: Tensor, step: int) -> Loss:
        hidden, location, raw = self._through_networks(x)
        atoms, slope = self.dictionary.weight, 1e-6  # so small that weights stay what they are
        rest = (location @ atoms.T).mul_(slope)
        by_codes = rest @ atoms
        torch.mm(rest.T, location, out=self.descent.room(atoms))
        self.descent.arrived(atoms)
        self._into_networks(hidden, by_codes, raw.mul_(slope))
        return Loss(*torch.zeros(4))


def products(n_steps: int, model: str, precision: Precision) -> Run | None:
    """A function that runs so many steps of products alone; None where gradients are not written out."""
    coder = built(BestOf(20), model)
    recipe = build_published(PUBLISHED["thresholded-laplacian"], Study(), SCRIPTS, BestOf(20)).recipe
    one = Step(coder, recipe.build(coder.parameter_groups()), recipe, 0, torch.device("cpu"), precision, Alone())
    if not direct(one):
        return None
    take, x = Products(one), torch.randn(recipe.batch_size, WIDTH)
    take(x, 0)

    def run() -> None:
        for step in range(n_steps):
            take(x, step)

    return run


class Gain(NamedTuple):
    """How many times faster our step is than differentiating all J: medians of paired runs, and their range."""

    wall: float  # than the bare loop
    least: float
    most: float
    ours: float  # than BestOfPlain in our loop
    worked: float  # than the bare loop, in processor time
    at_best: float
    bound: float | None
    seconds: dict[str, list[float]]  # of a step, by variant and round


def measure(n_samples: int, repeats: int, model: str, precision: Precision, n_steps: int = 30) -> Gain:
    """The gain of the winner-only step."""
    runs: dict[str, Run | None] = {
        "bare": stepper(BestOfPlain(n_samples), n_steps, model, bare=True),
        "plain": stepper(BestOfPlain(n_samples), n_steps, model, precision=precision),
        "winner": stepper(BestOf(n_samples), n_steps, model, precision=precision),
        "single": stepper(BestOf(1), n_steps, model, precision=precision),
        "products": products(n_steps, model, precision),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name, run in runs.items() if run is not None}
    for _ in range(repeats):
        for name in took:
            took[name].append(timed(runs[name]))  # type: ignore[arg-type]

    def over(slow: str, fast: str, clock: int = 0) -> list[float]:
        return [a[clock] / b[clock] for a, b in zip(took[slow], took[fast], strict=True)]

    every = over("bare", "winner")
    medians = [
        statistics.median(x) for x in (over("plain", "winner"), over("bare", "winner", 1), over("bare", "single"))
    ]
    bound = statistics.median(over("bare", "products")) if "products" in took else None
    seconds = {name: [wall / n_steps for wall, _ in turns] for name, turns in took.items()}
    return Gain(statistics.median(every), min(every), max(every), *medians, bound, seconds)


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


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    """Model, J and precision: all J for the MLP, 20 for the others, which multiply in float32 only."""
    for precision in options.precision:
        for model in options.models if precision == "float32" else ["mlp"]:
            for n_samples in options.samples if model == "mlp" else [20]:
                if precision == "float32" or n_samples >= 20:
                    yield model, n_samples, precision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--samples", type=int, nargs="*", default=[1, 5, 20, 100])
    parser.add_argument("--models", nargs="*", default=["mlp", "linear", "unrolled", "gamma"])
    parser.add_argument("--precision", nargs="*", choices=["float32", "bfloat16"], default=["float32", "bfloat16"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    print("| model | J | precision | times faster | range | our loop | CPU | at best | bound | MB | MB, all J |")
    print("| --- |" + " ---: |" * 10)
    for model, n_samples, precision in cases(options):
        gain = measure(n_samples, options.repeats, model, precision_named(precision, torch.device("cpu")))
        with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
            ours, plain = pool.map(peak, [(BestOf, n_samples), (BestOfPlain, n_samples)], chunksize=1)
        bound = "–" if gain.bound is None else f"{gain.bound:.2f}"
        print(
            f"| {model} | {n_samples} | {precision} | {gain.wall:.2f} | {gain.least:.2f}–{gain.most:.2f} "
            f"| {gain.ours:.2f} | {gain.worked:.2f} | {gain.at_best:.2f} | {bound} | {ours:.0f} | {plain:.0f} |",
            flush=True,
        )  # fmt: skip
        row = {"model": model, "J": n_samples, "precision": precision, "MB": ours, "MB_all": plain}
        rows.append({**row, **gain._asdict()})
        if options.output is not None:
            content = {"machine": {**machine(), "threads": options.threads}, "repeats": options.repeats, "rows": rows}
            options.output.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
