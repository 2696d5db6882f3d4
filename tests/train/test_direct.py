"""Steps with their gradients written out equal those by autograd, on the same random numbers."""

from dataclasses import replace

import pytest
import torch
from torch.optim import Adam

pytest.importorskip("numba", reason="compiled code needs numba")

from softspike.data import TensorRows
from softspike.encoder import LinearEncoder, UnrolledEncoder
from softspike.generator import UnitNormDictionary
from softspike.kernels.cpu.tiles import PAIRS
from softspike.layers.affine import knows_bfloat16
from softspike.methods.published import EQUATIONS, PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain
from softspike.posterior import GaussianPosterior, LaplacePosterior
from softspike.threshold import Subgradient
from softspike.train import train
from softspike.train.descent import AtTheEnd, LayerByLayer, descent_of
from softspike.train.direct import DirectStep, direct
from softspike.train.precision import BFloat16, Float16, FullPrecision
from softspike.train.state import pack
from softspike.train.step import Step
from softspike.train.team import Alone

STUDY = Study(40, 72, n_steps=8, batch_size=100, widths=(48, 33))
CPU = torch.device("cpu")


def built(method="thresholded-laplacian", conventions=SCRIPTS, **parts):
    """A coder with some parts exchanged, and its recipe."""
    coder, recipe = build_published(PUBLISHED[method], STUDY, conventions, BestOf(12), seed=3)
    torch.manual_seed(4)
    if "encoder" in parts:
        head = LaplacePosterior if method == "thresholded-laplacian" else GaussianPosterior
        coder.posterior = head(parts["encoder"].width, STUDY.n_components)
    for name, part in parts.items():
        setattr(coder, name, part)
    return coder, recipe


def unit_norm():
    random = torch.Generator().manual_seed(2)
    return built(generator=UnitNormDictionary(STUDY.n_features, STUDY.n_components, generator=random))


def subgradient():
    coder, recipe = built()
    coder.threshold.gradient = Subgradient()
    return coder, recipe


def clipped():
    coder, recipe = built()
    return coder, replace(recipe, clip_norm=0.05)


def far_out():
    """Heads beyond the bound on log σ², where its gradient ends."""
    coder, recipe = built("thresholded-gaussian")
    with torch.no_grad():
        coder.posterior.log_variance.bias[::3] = -20.5
    return coder, recipe


def by_adam():
    coder, recipe = built()
    groups = {name: replace(group, options={}) for name, group in recipe.groups.items()}
    return coder, replace(recipe, optimizer=Adam, groups=groups)


CASES = {
    "laplacian": built,
    "one sample": lambda: built(objective=BestOf(1)),
    "laplacian, equations": lambda: built(conventions=EQUATIONS),
    "gaussian": lambda: built("thresholded-gaussian"),
    "subgradient": subgradient,
    "no encoder": lambda: built(encoder=LinearEncoder(STUDY.n_features)),
    "gaussian, no encoder": lambda: built("thresholded-gaussian", encoder=LinearEncoder(STUDY.n_features)),
    "unit norms": unit_norm,
    "clipped": clipped,
    "far out": far_out,
    "Adam": by_adam,
}


def step_of(coder, recipe, precision=FullPrecision()):
    return Step(coder, recipe.build(coder.parameter_groups()), recipe, 5, CPU, precision, Alone())


@pytest.mark.parametrize("name", CASES)
def test_equal_to_autograd(name, monkeypatch):
    """Eight steps: every loss and, at the end, parameters and momenta, within 1e-4 of their size."""
    monkeypatch.setattr("softspike.objective.compiled._LEAST", 0)  # one sample of so few components, too
    x = torch.randn(8, 100, STUDY.n_features, generator=torch.Generator().manual_seed(0))
    runs = []
    for way in (DirectStep, lambda step: step):
        one = step_of(*CASES[name]())
        assert direct(one)
        take = way(one)
        losses = []
        for step in range(8):
            losses.append(torch.stack([value.detach() for value in take(x[step], step)]))
            one.coder.after_step(step)
        runs.append((torch.stack(losses), pack(one.coder, one.optimizer)))
    (fast, fast_state), (plain, plain_state) = runs
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)
    assert fast_state.keys() == plain_state.keys()
    for key, value in plain_state.items():
        size = float(value.abs().nan_to_num().max()) if value.is_floating_point() else 0.0
        torch.testing.assert_close(fast_state[key], value, rtol=1e-4, atol=1e-4 * size, equal_nan=True, msg=key)


LATE = {"clipped", "unit norms", "Adam"}  # what needs all gradients at once, or another optimiser


@pytest.mark.parametrize("name", CASES)
def test_layers_move_at_once_where_they_can(name):
    assert isinstance(descent_of(step_of(*CASES[name]())), AtTheEnd if name in LATE else LayerByLayer)


@pytest.mark.skipif(not knows_bfloat16(), reason="this processor has no products in bfloat16")
@pytest.mark.parametrize("name", ["laplacian", "gaussian", "no encoder"])
def test_bfloat16_is_near_float32(name):
    """One step: its loss within 1 %, and the way that every parameter went within 20 % of its length. Eight bits are
    good to 0.4 % a number, and another sample may win where two are nearly as good."""
    x = torch.randn(100, STUDY.n_features, generator=torch.Generator().manual_seed(0))
    runs = []
    for precision in (FullPrecision(), BFloat16()):
        one = step_of(*CASES[name](), precision=precision)
        assert direct(one)
        before = {k: v.detach().clone() for k, v in one.coder.named_parameters()}
        loss = torch.stack([value.detach() for value in DirectStep(one)(x, 0)])
        runs.append((loss, {k: v.detach() - before[k] for k, v in one.coder.named_parameters()}))
    (full, ways), (low, low_ways) = runs
    torch.testing.assert_close(low, full, rtol=1e-2, atol=1e-3)
    for key, way in ways.items():
        assert low_ways[key].dtype == torch.float32
        assert 0 < (low_ways[key] - way).norm() < 0.2 * way.norm(), key


def _weigh_in_float32(grad, inputs, by_weight):
    torch.mm(grad.T.float(), inputs.float(), out=by_weight)


@pytest.mark.skipif(not (knows_bfloat16() and PAIRS), reason="this processor has no products in bfloat16")
@pytest.mark.parametrize("name", ["laplacian", "gaussian", "no encoder"])
def test_bfloat16_layer_by_layer_is_that_at_the_end(name, monkeypatch):
    """Eight steps with weights that move tile by tile with their copies, beside gradients of the same numbers in
    float32, the optimiser at the end and copies made anew: every parameter and momentum to 1e-3 of its size, where two
    ways to sum may round a copy or a gradient of an activation otherwise. Rounded gradients would be 4e-3 off."""
    monkeypatch.setattr("softspike.train.descent.weigh", _weigh_in_float32)
    x = torch.randn(8, 100, STUDY.n_features, generator=torch.Generator().manual_seed(0))
    states = []
    for kind in (LayerByLayer, AtTheEnd):
        if kind is AtTheEnd:
            monkeypatch.setattr("softspike.train.direct.descent_of", AtTheEnd)
        one = step_of(*CASES[name](), precision=BFloat16())
        take = DirectStep(one)
        assert type(take.descent) is kind
        for step in range(8):
            take(x[step], step)
            one.coder.after_step(step)
        states.append(pack(one.coder, one.optimizer))
    fast, plain = states
    assert fast.keys() == plain.keys()
    for key, value in plain.items():
        size = float(value.abs().nan_to_num().max()) if value.is_floating_point() else 0.0
        torch.testing.assert_close(fast[key], value, rtol=1e-3, atol=1e-3 * size, equal_nan=True, msg=key)


@pytest.mark.parametrize("head", ["location", "log_scale"])
def test_a_number_that_is_none_reaches_the_loss(head):
    coder, recipe = built()
    with torch.no_grad():
        getattr(coder.posterior, head).bias[7] = torch.nan
    assert not DirectStep(step_of(coder, recipe))(torch.randn(100, STUDY.n_features), 0).total.isfinite()


def _frozen():
    coder, recipe = built()
    coder.generator.requires_grad_(False)
    return coder, recipe


def _unrolled():
    coder, recipe = built()
    coder.encoder = UnrolledEncoder(coder.generator, coder.threshold.level, 2, 0.1)
    coder.posterior = LaplacePosterior(STUDY.n_components, STUDY.n_components)
    return coder, recipe


OTHERS = {
    "a level with a law": lambda: step_of(*built("thresholded-laplacian-gamma")),
    "no threshold": lambda: step_of(*built("laplacian")),
    "another encoder": lambda: step_of(*_unrolled()),
    "another objective": lambda: step_of(*built(objective=BestOfPlain(12))),
    "few samples": lambda: step_of(*built(objective=BestOf(1))),
    "parameters that stay": lambda: step_of(*_frozen()),
    "another precision": lambda: step_of(*built(), precision=Float16("cpu")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_steps_are_left_to_autograd(name):
    assert not direct(OTHERS[name]())


def test_the_loop_takes_it(monkeypatch):
    taken = []
    monkeypatch.setattr(DirectStep, "__call__", lambda self, x, step: taken.append(step) or self.one(x, step))
    coder, recipe = built()
    train(coder, TensorRows(torch.randn(200, STUDY.n_features)), recipe)
    assert taken == list(range(8))
