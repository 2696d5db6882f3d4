"""Replicas through one batched pass equal training in turn: the same rows, the same random numbers."""

import copy
from dataclasses import replace

import pytest
import torch

from softspike.data import TensorRows
from softspike.encoder import LinearEncoder
from softspike.layers import ImageShape
from softspike.methods import ConvNetworks
from softspike.methods.published import EQUATIONS, PUBLISHED, SCRIPTS, Study, build_published
from softspike.methods.registry import METHODS, Plan, build
from softspike.objective import BestOf, BestOfPlain, ImportanceWeighted, MeanOf
from softspike.posterior import GaussianPosterior, Generators
from softspike.schedule import Constant
from softspike.threshold import Subgradient
from softspike.train import (
    GroupRecipe,
    Mirrored,
    NotTogether,
    batch_rows,
    replicas,
    step_random,
    train_batched,
    train_in_turn,
    train_replicas,
)
from softspike.train.order import Orders
from softspike.train.stack import Stack

X = torch.randn(60, 12, generator=torch.Generator().manual_seed(3))
PLAN = Plan(12, 20, 0.15, n_steps=12, batch_size=16)
STUDY = Study(n_features=12, n_components=9, n_steps=8, batch_size=16, widths=(16, 10))
SEEDS = [0, 5, 6]


class DoubleRows(TensorRows):
    """In float64: rounding is far too small to decide which of J samples is the best."""

    def take(self, indices):
        return super().take(indices).double()


def coders_of(method, plan=PLAN):
    made = [build(METHODS[method], plan, seed) for seed in SEEDS]
    return [coder for coder, _ in made], made[0].recipe


def published(method, objective, conventions=SCRIPTS):
    made = [build_published(PUBLISHED[method], STUDY, conventions, objective, seed) for seed in SEEDS]
    return [coder.double() for coder, _ in made], made[0].recipe


def both_ways(coders, recipe, rows):
    """Trained together and, from the same start, in turn."""
    together, alone = coders, copy.deepcopy(coders)
    ends = train_replicas(together, rows, recipe, seeds=SEEDS, engine=train_batched)
    assert ends == train_replicas(alone, rows, recipe, seeds=SEEDS, engine=train_in_turn) == [None] * len(SEEDS)
    return together, alone


def assert_same(together, alone, **tolerance):
    for one, other in zip(together, alone, strict=True):
        for (name, value), wanted in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            torch.testing.assert_close(value, wanted, equal_nan=True, msg=lambda m, n=name: f"{n}: {m}", **tolerance)


OBJECTIVES = {
    "best of 1": BestOf(1),
    "best of 20": BestOf(20),
    "best of 5, plainly": BestOfPlain(5),
    "average": MeanOf(5),
    "importance-weighted": ImportanceWeighted(5),
}
SAMPLING = [name for name in PUBLISHED if name != "fista"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", SAMPLING)
def test_replicas_that_draw_equal_training_in_turn(method, objective):
    """Weights after eight steps of the published recipe, in float64: to 1e-9, which other random numbers are not."""
    together, alone = both_ways(*published(method, OBJECTIVES[objective]), DoubleRows(X))
    assert_same(together, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("conventions", [EQUATIONS, replace(SCRIPTS, gradient=Subgradient())], ids=["paper", "sub"])
@pytest.mark.parametrize("objective", [MeanOf(3), ImportanceWeighted(3)], ids=["average", "weighted"])
@pytest.mark.parametrize("method", ["spike-and-slab", "thresholded-laplacian"])
def test_other_conventions_too(method, objective, conventions):
    together, alone = both_ways(*published(method, objective, conventions), DoubleRows(X))
    assert_same(together, alone, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["hard-gaussian", "topk", "batchtopk", "jumprelu"])
def test_replicas_that_draw_nothing_equal_training_in_turn(method):
    """Weights, levels, prices and counts after twelve steps; sums in another order: 1e-4 of the largest value."""
    assert_same(*both_ways(*coders_of(method), TensorRows(X)), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("method", ["thresholded-laplacian", "thresholded-gaussian", "spike-and-slab"])
def test_methods_of_the_library_in_float32(method):
    """Adam, clipping, 512 to 1,024 hidden units: to 5e-3 of each tensor's norm, where other random numbers make 3e-2.
    Adam's step is as long where a gradient is nothing but rounding, and rounding may choose another of J samples."""
    for one, other in zip(*both_ways(*coders_of(method), TensorRows(X)), strict=True):
        for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
            assert (a - b).norm() <= 5e-3 * b.norm() + 1e-6, name


def test_mirrored_images_and_batch_norm():
    """A deep model: every replica's own batch is mirrored and normalised, and running statistics follow; float64."""
    plan = Plan(784, 6, 0.2, 2, 4, 2, networks=ConvNetworks((28, 28, 1)))
    coders, recipe = coders_of("thresholded-laplacian", plan)
    recipe = replace(recipe, augment=Mirrored(ImageShape(28, 1)))
    rows = DoubleRows(torch.rand(8, 784, generator=torch.Generator().manual_seed(0)))
    assert_same(*both_ways([coder.double() for coder in coders], recipe, rows), rtol=1e-6, atol=1e-9)


def test_each_replica_draws_from_its_own_generator():
    """The loss of the stack is that of each coder with its step's generator, whatever the time is given as."""
    coders, _ = published("thresholded-laplacian-gamma", BestOf(6))
    x = X.double()[:48].view(3, 16, 12)
    alone = torch.stack([coder.loss(x[n], 3, step_random(SEEDS[n], 3)).total for n, coder in enumerate(coders)])
    stack = Stack(coders)
    for time in (3, torch.tensor(3.0, dtype=torch.float64)):
        own = Generators([step_random(seed, 3) for seed in SEEDS])
        torch.testing.assert_close(stack.loss(x, time, own).total, alone, rtol=1e-10, atol=0)


def test_orders_are_those_of_each_seed():
    orders = Orders(SEEDS, 60, 16)
    for step in (0, 1, 2, 3, 7, 4, 100):  # back and forth over epochs of three steps
        assert torch.equal(orders(step), torch.stack([batch_rows(seed, step, 60, 16) for seed in SEEDS]))


def test_trained_replicas_own_their_memory():
    coders, recipe = coders_of("topk")
    train_replicas(coders, TensorRows(X), recipe, seeds=SEEDS, engine=train_batched)
    storages = {p.untyped_storage().data_ptr() for coder in coders for p in coder.parameters()}
    assert len(storages) == sum(1 for coder in coders for _ in coder.parameters())


def test_weights_of_the_divergences_may_differ():
    """A sweep over β: each replica pays its own, for drawn levels too."""
    made = [build(METHODS["thresholded-laplacian-gamma"], replace(PLAN, beta=beta), 0) for beta in (1e-3, 1e-2, 1e-1)]
    coders = [coder.double() for coder, _ in made]
    together, alone = both_ways(coders, made[0].recipe, DoubleRows(X))
    assert_same(together, alone, rtol=1e-6, atol=1e-8)


def _targets():
    return [build(METHODS["topk"], replace(PLAN, activity=activity), 0) for activity in (0.1, 0.15, 0.2)]


def _samples():
    return [build_published(PUBLISHED["gaussian"], STUDY, SCRIPTS, MeanOf(j), 0) for j in (2, 2, 3)]


def _gradients():
    other = replace(SCRIPTS, gradient=Subgradient())
    how = (SCRIPTS, SCRIPTS, other)
    return [build_published(PUBLISHED["thresholded-laplacian"], STUDY, c, MeanOf(2), 0) for c in how]


def _laws():
    names = ("gaussian", "laplacian", "gaussian")
    return [build_published(PUBLISHED[name], STUDY, SCRIPTS, MeanOf(2), 0) for name in names]


def _sizes():
    return [build(METHODS["topk"], replace(PLAN, n_components=n), 0) for n in (20, 20, 21)]


def _solver():
    return [build(METHODS["fista"], PLAN, seed) for seed in SEEDS]


class SameEncoder(LinearEncoder):
    """Without parameters, as its like."""


def _encoders():
    made = [build(METHODS["gaussian"], PLAN, seed) for seed in SEEDS]
    for built, kind in zip(made, (LinearEncoder, LinearEncoder, SameEncoder), strict=True):
        built.coder.encoder, built.coder.posterior = kind(12), GaussianPosterior(12, 20)
    return made


class NoisyMean(MeanOf):
    """Draws in a way of its own, after a buffer was changed."""

    def __call__(self, evidence, generator=None):
        evidence.beta.mul_(2)
        return super().__call__(replace(evidence, x=evidence.x + torch.randn(12, generator=generator)), generator)


class OutOfMemory(torch.autograd.Function):
    """The gradient of so many replicas does not fit."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output): ...

    @staticmethod
    def backward(ctx, grad):
        raise torch.OutOfMemoryError("CUDA out of memory")


class LargeMean(MeanOf):
    def __call__(self, evidence, generator=None):
        terms = super().__call__(evidence, generator)
        return terms._replace(loss=OutOfMemory.apply(terms.loss))


def _out_of_memory():
    return [build_published(PUBLISHED["gaussian"], STUDY, SCRIPTS, LargeMean(2), seed) for seed in SEEDS]


def _drawing_otherwise():
    return [build_published(PUBLISHED["gaussian"], STUDY, SCRIPTS, NoisyMean(2), seed) for seed in SEEDS]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_targets, r"differ in their settings \(target is 2.0 in one and 3.0 in another\)"),
        (_samples, r"differ in their settings \(objective is MeanOf\(n_samples=2\) in one and MeanOf\(n_samples=3\)"),
        (_gradients, r"differ in their settings \(threshold.gradient is DoubledStraightThrough in one and Subgradient"),
        (_laws, "differ in their parameters; replicas share all shapes"),
        (_encoders, r"differ in their settings \(encoder is a LinearEncoder in one and a SameEncoder in another"),
        (_sizes, "differ in their parameters; replicas share all shapes"),
        (_solver, "how far a step of FistaCoder goes depends on its numbers"),
        (_drawing_otherwise, r"the loss of \w+ cannot be batched \(vmap: called random operation"),
        (_out_of_memory, r"cannot be batched \(CUDA out of memory\)"),
    ],
)
def test_what_cannot_be_batched_is_refused_in_words_and_left_alone(make, words):
    coders, recipes = zip(*make(), strict=True)
    before = copy.deepcopy(coders)
    with pytest.raises(NotTogether, match=words):
        train_replicas(coders, TensorRows(X), recipes[0], seeds=SEEDS, engine=train_batched)
    assert_same(coders, before, rtol=0, atol=0)


def test_where_replicas_cannot_go_together_a_warning_says_why(monkeypatch):
    """And they train one after the other, as they would alone."""
    ways = replicas._engines("cuda", 3)[1:]
    monkeypatch.setattr("softspike.train.replicas._engines", lambda device, n: ways)
    made = _targets()
    coders, alone = [coder for coder, _ in made], copy.deepcopy([coder for coder, _ in made])
    with pytest.warns(UserWarning, match=r"target is 2.0 .*: these 3 coders train one after the other"):
        train_replicas(coders, TensorRows(X), made[0].recipe, seeds=SEEDS)
    train_in_turn(alone, TensorRows(X), made[0].recipe, seeds=SEEDS)
    assert_same(coders, alone, rtol=0, atol=0)


def test_a_replica_that_diverges_ends_as_it_would_alone_and_leaves_the_others():
    """At the same step, for the same reason."""
    coders, recipe = published("gaussian", MeanOf(2))
    with torch.no_grad():
        coders[1].posterior.location.weight.fill_(1e200)
    recipe = replace(recipe, log_every=3, groups={**recipe.groups, "generator": GroupRecipe(Constant(1e-3))})
    alone = copy.deepcopy(coders)
    ends = train_batched(coders, DoubleRows(X), recipe, seeds=SEEDS)
    wanted = train_in_turn(alone, DoubleRows(X), recipe, seeds=SEEDS)
    assert [str(end) for end in ends] == [str(end) for end in wanted]
    assert ends[0] is None
    assert ends[1] is not None
    assert_same(coders[::2], alone[::2], rtol=1e-9, atol=1e-9)


def test_a_frozen_parameter_stays_as_it_is():
    """In company as alone; one that is learned by some only is a reason to train in turn."""
    coders, recipe = published("thresholded-laplacian", BestOf(2))
    for coder in coders:
        coder.generator.weight.requires_grad_(False)
    before = [coder.generator.weight.clone() for coder in coders]
    together, alone = both_ways(coders, recipe, DoubleRows(X))
    assert_same(together, alone, rtol=0, atol=1e-9)
    for coder, weight in zip(together, before, strict=True):
        assert torch.equal(coder.generator.weight, weight)
    coders[1].generator.weight.requires_grad_(True)
    with pytest.raises(NotTogether, match="what is learned"):
        Stack(coders)
