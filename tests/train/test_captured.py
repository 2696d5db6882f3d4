"""A recorded step is the step: the same weights from the same batches, times and random numbers."""

import copy

import pytest
import torch

from softspike.data import TensorRows
from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf
from softspike.train import Alone, BFloat16, FullPrecision, train
from softspike.train.captured import capturable
from softspike.train.order import step_random
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


def test_nothing_is_recorded_on_a_cpu():
    coder, recipe = build_published(PUBLISHED["gaussian"], STUDY, SCRIPTS, BestOf(2), seed=0)
    assert not capturable(step_of(coder, recipe))
    plain = copy.deepcopy(coder)
    train(coder, TensorRows(data()), recipe, captured=True)
    train(plain, TensorRows(data()), recipe)
    for a, b in zip(coder.parameters(), plain.parameters(), strict=True):
        assert torch.equal(a, b)


def linear(method):
    study = Study(n_steps=30)
    return build_published(PUBLISHED[method], study, SCRIPTS, BestOf(4), seed=0), data(3000, 256), FullPrecision()


def deep():
    plan = Plan(784, 32, 0.1, 30, 16, 4, beta=1e-2, networks=ConvNetworks((28, 28, 1)))
    return build(method_named("thresholded-gaussian"), plan, 0), torch.rand(64, 784), BFloat16()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", [*METHODS, "deep"])
def test_recorded_steps_equal_single_ones(case, recwarn):
    """30 steps: 1e-3 relative in float32, whose sums the fused optimiser orders otherwise; 5e-2 in bfloat16."""
    (coder, recipe), x, precision = deep() if case == "deep" else linear(case)
    plain, rows = copy.deepcopy(coder), TensorRows(x.cuda())
    for one, captured in ((coder, True), (plain, False)):
        train(one.cuda(), rows, recipe, device="cuda", precision=precision, captured=captured)
    assert not [w for w in recwarn if "kernel by kernel" in str(w.message)]
    tolerance = 5e-2 if case == "deep" else 1e-3
    for a, b in zip(coder.parameters(), plain.parameters(), strict=True):
        assert (a - b).norm() <= tolerance * b.norm() + 1e-6
