"""A recorded step is the step: the same weights from the same batches, times and random numbers."""

import copy
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from softspike.data import TensorRows
from softspike.methods import METHODS as NAMED
from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, ImportanceWeighted, MeanOf
from softspike.threshold import Subgradient
from softspike.train import Alone, BFloat16, FullPrecision, train
from softspike.train.batched import BatchedStep, train_batched
from softspike.train.captured import capturable
from softspike.train.loop import current, training
from softspike.train.order import step_random
from softspike.train.stack import Stack
from softspike.train.state import pack, unpack
from softspike.train.step import Step

STUDY = Study(n_features=12, n_components=9, n_steps=8, widths=(16, 10))
METHODS = ["gaussian", "laplacian", "spike-and-slab", "thresholded-laplacian-gamma"]


def data(n=40, n_features=12):
    return torch.randn(n, n_features, generator=torch.Generator().manual_seed(0))


def step_of(coder, recipe, precision=FullPrecision(), device="cpu"):
    optimizer = recipe.build(coder.parameter_groups())
    return Step(coder, optimizer, recipe, 0, torch.device(device), precision, Alone())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("number", [0, 3, 7])
def test_the_time_may_be_a_number_on_the_device(method, number):
    """Warm-ups and temperatures read from a tensor move the parameters as those of an integer: to rounding."""
    coder, recipe = build_published(PUBLISHED[method], STUDY, SCRIPTS, BestOf(4), seed=0)
    other = copy.deepcopy(coder)
    for one, time in ((coder, number), (other, torch.tensor(float(number), dtype=torch.float64))):
        step_of(one, recipe).descend(data(), time, step_random(0, number))
    for a, b in zip(coder.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("given", ["cuda:1", torch.device("cuda", 2), "cpu"])
def test_training_makes_its_gpu_the_current_one(given, monkeypatch):
    """Graphs are recorded and kernels launched there, whichever it is: here, only that torch is told."""
    told = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: (told.append(torch.device(device)), nullcontext())[1])
    with current(given), training(nn.Linear(1, 1), torch.device(given)):
        pass
    assert told == ([] if given == "cpu" else [torch.device(given)] * 2)


@pytest.mark.parametrize("method", NAMED)
def test_the_time_may_be_on_the_device_for_every_method(method):
    """The same of the library's own recipes, from the second step on: the first is never a recorded one."""
    (coder, recipe), x = build(method_named(method), Plan(12, 9, 0.2, 8, 20, 3), 0), data()
    step_of(coder, recipe).descend(x, 0, step_random(0, 0))
    other = copy.deepcopy(coder)
    for one, time in ((coder, 3), (other, torch.tensor(3.0, dtype=torch.float64))):
        step_of(one, recipe).descend(x, time, step_random(0, 3))
    for a, b in zip(coder.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


class Asking(TorchDispatchMode):
    """Remembers what cannot be recorded: numbers read by the host, or made by it from a list."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket in ASKING:
            self.seen.add(str(function))
        return function(*args, **(kwargs or {}))


ASKING = [torch.ops.aten._local_scalar_dense, torch.ops.aten.nonzero, torch.ops.aten.equal, torch.ops.aten.lift_fresh]


@pytest.mark.parametrize("objective", [BestOf(4), MeanOf(4), ImportanceWeighted(4)], ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_nothing_in_a_step_asks_the_host(method, objective):
    """Of one coder, and of two together; the first step of a stack finds out whether it can be one."""
    made = [build_published(PUBLISHED[method], STUDY, SCRIPTS, objective, seed) for seed in (0, 1)]
    coders, recipe = [built.coder for built in made], made[0].recipe
    one, stacked = step_of(coders[0], recipe), BatchedStep(Stack(copy.deepcopy(coders)), recipe, (0, 1), "cpu")
    x, both, time = data(), data().repeat(2, 1, 1), torch.tensor(3.0, dtype=torch.float64)
    stacked(both, 0)
    with Asking() as asking:
        one.descend(x, time, step_random(0, 3))
        stacked.descend(both, time, stacked.random())
        assert asking.seen == set()
        one.descend(x, time, step_random(0, 3)).total.item()
        assert "aten._local_scalar_dense.default" in asking.seen  # so it does notice


@pytest.mark.parametrize("positive", [False, True])
def test_nothing_in_a_step_of_the_default_model_asks_the_host(positive):
    """Non-negative codes too, whose prior torch makes from a number of the host's."""
    coder, recipe = build(method_named("hard-gaussian"), Plan(12, 9, 0.2, 8, 20, 3, positive=positive), 0)
    step, time = step_of(coder, recipe), torch.tensor(3.0, dtype=torch.float64)
    step.descend(data(), 0, step_random(0, 0))
    with Asking() as asking:
        step.descend(data(), time, step_random(0, 3))
    assert asking.seen == set()


def test_nothing_is_recorded_on_a_cpu():
    coder, recipe = build_published(PUBLISHED["gaussian"], STUDY, SCRIPTS, BestOf(2), seed=0)
    assert not capturable(step_of(coder, recipe), 1000)
    plain = copy.deepcopy(coder)
    train(coder, TensorRows(data()), recipe, captured=True)
    train(plain, TensorRows(data()), recipe)
    for a, b in zip(coder.parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b)


def published(method):
    return build_published(PUBLISHED[method], Study(n_steps=20), SCRIPTS, BestOf(4), seed=0), data(3000, 256)


def of_the_library(method):
    return build(method_named(method), Plan(64, 96, 0.1, 20, 100, 4), 0), data(3000, 64)


def non_negative(method):
    return build(method_named(method), Plan(64, 96, 0.1, 20, 100, 4, positive=True), 0), data(3000, 64).abs()


def deep(method):
    plan = Plan(784, 32, 0.1, 20, 16, 4, beta=1e-2, networks=ConvNetworks((28, 28, 1)))
    return build(method_named(method), plan, 0), torch.rand(64, 784)


CASES = {
    **{f"published {method}": (published, method, FullPrecision()) for method in METHODS},
    **{method: (of_the_library, method, FullPrecision()) for method in NAMED if method != "fista"},
    "hard-gaussian, non-negative": (non_negative, "hard-gaussian", FullPrecision()),
    **{f"deep {method}": (deep, method, BFloat16()) for method in ("spike-and-slab", "thresholded-gaussian-gamma")},
}


def assert_near(one, other, tolerance):
    for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
        assert (a - b).norm() <= tolerance * b.norm() + 1e-6, name


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", CASES)
def test_recorded_steps_equal_single_ones(case, recwarn, monkeypatch):
    """20 steps: 2e-3 relative in float32, whose sums the fused optimiser orders otherwise; 5e-2 in bfloat16."""
    monkeypatch.setattr("softspike.train.captured.WORTH", 0)
    make, method, precision = CASES[case]
    (coder, recipe), x = make(method)
    plain, rows = copy.deepcopy(coder), TensorRows(x.cuda())
    for one, captured in ((coder, True), (plain, False)):
        train(one.cuda(), rows, recipe, device="cuda", precision=precision, captured=captured)
    assert not [w for w in recwarn if "kernel by kernel" in str(w.message)]
    assert_near(coder, plain, 2e-3 if isinstance(precision, FullPrecision) else 5e-2)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("before", [True, False], ids=["recorded before", "single before"])
def test_a_recorded_run_goes_on_from_its_state(before, monkeypatch):
    """10 of 20 steps, packed, unpacked into a fresh coder, 10 more: as in one go, to 2e-3."""
    monkeypatch.setattr("softspike.train.captured.WORTH", 0)
    coder, recipe = build(method_named("hard-gaussian"), Plan(64, 96, 0.1, 20, 100, 4), 0)
    other, again, rows = copy.deepcopy(coder), copy.deepcopy(coder), TensorRows(data(3000, 64).cuda())
    train(coder.cuda(), rows, recipe, device="cuda")
    half = train(other.cuda(), rows, replace(recipe, n_steps=10), device="cuda", captured=before)
    optimizer = recipe.build(again.cuda().parameter_groups())
    unpack(pack(other, half), again, optimizer)
    train(again, rows, recipe, device="cuda", optimizer=optimizer, start=10)
    assert_near(again, coder, 2e-3)


# The first twenty steps of a whole schedule: one of twenty steps in all is so steep that rounding grows with it.


def replicas_of_the_library(method, _):
    made = [build(method_named(method), Plan(64, 96, 0.1, 2000, 100, 4), seed) for seed in range(3)]
    return [built.coder for built in made], replace(made[0].recipe, n_steps=20), data(3000, 64)


def replicas_of_the_study(method, objective):
    weighted = isinstance(objective, ImportanceWeighted)
    how = replace(SCRIPTS, gradient=Subgradient()) if weighted else SCRIPTS
    made = [build_published(PUBLISHED[method], Study(), how, objective, seed) for seed in range(3)]
    return [built.coder for built in made], replace(made[0].recipe, n_steps=20), data(3000, 256)


TOGETHER = {
    **{method: (replicas_of_the_library, method, None) for method in NAMED if method != "fista"},
    **{
        f"published {method}, {objective}": (replicas_of_the_study, method, objective)
        for method in ("thresholded-laplacian", "thresholded-laplacian-gamma", "spike-and-slab")
        for objective in (BestOf(20), MeanOf(20), ImportanceWeighted(20))
    },
}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", TOGETHER)
def test_replicas_recorded_together_equal_each_alone(case, recwarn, monkeypatch):
    """Three seeds, 20 steps, the same rows and random numbers: 2e-3 of each parameter's norm, as products of three
    sum in another order than those of one, and with Adam a gradient of nothing but rounding moves a weight as well.
    1e-2 with Gamma levels: drawn by rejection, where the last bit of a shape may turn a refusal."""
    monkeypatch.setattr("softspike.train.captured.WORTH", 0)
    make, method, objective = TOGETHER[case]
    together, recipe, x = make(method, objective)
    alone, rows = copy.deepcopy(together), TensorRows(x.cuda())
    assert train_batched(together, rows, recipe, seeds=range(3), device="cuda", captured=True) == [None] * 3
    for seed, coder in enumerate(alone):
        train(coder.cuda(), rows, recipe, seed=seed, device="cuda", captured=False)
    assert not [w for w in recwarn if "kernel by kernel" in str(w.message)]
    for one, other in zip(together, alone, strict=True):
        assert_near(one, other, 1e-2 if "gamma" in method else 2e-3)
