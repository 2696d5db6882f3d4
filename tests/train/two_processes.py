"""Run by test_team.py: two forked processes train together, and one of them again alone; prints what differs."""

import json
import os
import sys
import tempfile
from functools import partial

import torch
import torch.distributed as dist
from torch.optim import SGD

from softspike.data import TensorRows
from softspike.encoder import ConvEncoder, MLPEncoder
from softspike.generator import ConvGenerator, Dictionary
from softspike.layers import ImageShape
from softspike.methods import METHODS, Plan, build
from softspike.model import VariationalCoder
from softspike.objective import BestOf, Evidence, Noise
from softspike.posterior import GaussianPosterior
from softspike.prior import NormalPrior
from softspike.schedule import Constant
from softspike.threshold import FixedLevel, ShiftedSoft, Threshold
from softspike.train import Alone, BFloat16, FullPrecision, GroupRecipe, Mirrored, Processes, Recipe, train

torch.set_num_threads(1)
B, J, D, COMPONENTS, STEPS = 12, 4, 64, 5, 3


def coder(kind):
    torch.manual_seed(0)
    encoder = ConvEncoder((8, 8)) if kind == "conv" else MLPEncoder(D, (16,))
    generator = ConvGenerator((8, 8), COMPONENTS) if kind == "conv" else Dictionary(D, COMPONENTS)
    posterior = GaussianPosterior(encoder.width, COMPONENTS)
    return VariationalCoder(
        encoder, posterior, NormalPrior(0.1), generator, BestOf(J), Threshold(ShiftedSoft, FixedLevel(0.2))
    )


class Watching:
    """The figures that an observer is shown."""

    def __init__(self):
        self.figures = []

    def logged(self, progress):
        self.figures.append([float(value) for value in progress.loss])

    def saved(self, progress): ...


def trained(kind, team, precision):
    """The same steps, whoever does them: each process takes its share of the noise of the whole batch."""
    random = torch.Generator().manual_seed(5)
    drawn = iter([torch.randn(B, J, COMPONENTS, generator=random) for _ in range(STEPS)])
    Evidence.noise = lambda *_: Noise(team.share(next(drawn)).transpose(0, 1), None)
    group = GroupRecipe(Constant(0.5))
    recipe = Recipe(
        STEPS, B, partial(SGD, momentum=0.9), {"inference": group, "generator": group}, clip_norm=1.0, log_every=1,
        augment=Mirrored(ImageShape(8, 1)),
    )  # fmt: skip
    model, rows, watching = coder(kind), TensorRows(torch.rand(40, D, generator=random)), Watching()
    train(model, rows, recipe, seed=1, team=team, precision=precision, observers=[watching])
    return {name: value.double() for name, value in model.state_dict().items()}, watching.figures


def largest_difference(one, other):
    return max(
        float((one[name] - other[name]).abs().max())
        for name in one
        if not (one[name].isnan().any() or name.endswith("num_batches_tracked"))
    )


def steered():
    """How far two processes are apart whose level follows the batch, each having seen a half of it."""
    model, recipe = build(METHODS["hard-gaussian"], Plan(D, COMPONENTS, 0.2, 20, B), 0)
    start = model.threshold.level.value.item()
    train(model, TensorRows(torch.randn(40, D, generator=torch.Generator().manual_seed(2))), recipe, team=Processes())
    assert abs(model.threshold.level.value.item() - start) > 1e-3
    own = {name: value.double() for name, value in model.state_dict().items()}
    theirs = {name: value.clone() for name, value in own.items()}
    for value in theirs.values():
        dist.broadcast(value, src=1)
    return largest_difference(own, theirs)


def work(rank, store):
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    findings = {}
    for kind in ("linear", "conv"):
        for precision in (FullPrecision(), BFloat16()):
            together, figures = trained(kind, Processes(), precision)
            theirs = {name: value.clone() for name, value in together.items()}
            for value in theirs.values():
                dist.broadcast(value, src=1)
            alone, own = trained(kind, Alone(), precision)
            start = {name: value.double() for name, value in coder(kind).state_dict().items()}
            findings[f"{kind} {type(precision).__name__}"] = {
                "moved": largest_difference(alone, start),
                "processes differ": largest_difference(together, theirs),
                "differs from alone": largest_difference(together, alone),
                "figures differ": float((torch.tensor(figures) - torch.tensor(own)).abs().max()),
            }
    findings["steered FullPrecision"] = {"processes differ": steered()}
    dist.destroy_process_group()
    if rank == 0:
        print(json.dumps(findings))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "store")
        child = os.fork()
        if child == 0:
            work(1, path)
            os._exit(0)
        work(0, path)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
