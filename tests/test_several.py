"""Several starts and several settings: each as if trained alone, the best start kept."""

import sys
import warnings
from functools import partial

import numpy as np
import pytest
import torch
from small import quick, same_bits, small_data
from torch.optim import SGD, Adam

from softspike import SparseCoder, sweep
from softspike.data import StandardisedRows
from softspike.fitting import several
from softspike.fitting.aside import split
from softspike.methods import Built
from softspike.methods.ours import hard_gaussian
from softspike.train import Diverged, Recipe, replicas, train_batched

X = small_data()


@pytest.mark.parametrize("method", ["hard-gaussian", "thresholded-laplacian", "fista", "topk"])
def test_each_start_is_as_if_alone(method, monkeypatch):
    """Bit for bit on a CPU: what `fit` makes of each seed; the one of least error is kept."""
    kept = {}
    monkeypatch.setattr("softspike.estimator.best_of", lambda outcomes: kept.setdefault("all", outcomes)[1].fitted)
    coder = quick(method=method, n_init=3, random_state=5).fit(X)
    outcomes = kept["all"]
    assert len(outcomes) == 3
    for number, outcome in enumerate(outcomes):
        alone = quick(method=method, random_state=5 + number).fit(X)
        outcome.calibrate()
        assert same_bits(outcome.fitted.coder.state_dict(), alone.coder_.state_dict())
    assert coder.init_errors_ == pytest.approx([outcome.error for outcome in outcomes])


@pytest.mark.parametrize(
    "method", ["hard-gaussian", "laplacian", "thresholded-laplacian", "spike-and-slab", "jumprelu"]
)
def test_each_start_of_one_batched_pass_is_as_if_alone(method, monkeypatch, recwarn):
    """The pass that a GPU takes, here on a CPU, without a warning: parameters to 5e-3 of their norm."""
    ways = replicas._engines("cuda", 2)[1:]
    assert ways[0].engine is train_batched
    monkeypatch.setattr(replicas, "_engines", lambda device, n_coders: ways)
    kept = {}
    monkeypatch.setattr("softspike.estimator.best_of", lambda outcomes: kept.setdefault("all", outcomes)[1].fitted)
    quick(method=method, n_init=2, random_state=5).fit(X)
    assert not [w for w in recwarn if "one after the other" in str(w.message)]
    for number, outcome in enumerate(kept["all"]):
        alone = quick(method=method, random_state=5 + number).fit(X)
        for (name, a), b in zip(outcome.fitted.coder.named_parameters(), alone.coder_.parameters(), strict=True):
            assert (a - b).norm() <= 5e-3 * b.norm() + 1e-6, name


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_the_best_start_is_kept():
    """Its error on held-out rows is the smallest, and the estimator uses, saves and goes on with that coder."""
    coder = quick(n_init=4).fit(X)
    assert coder.init_errors_.shape == (4,)
    assert len(set(coder.init_errors_)) == 4
    assert bool(coder.coder_.cut.isfinite())
    rows, _ = coder.begin(X)
    aside = split(StandardisedRows(rows, coder.standardiser_), 24)[1].rows
    x = aside.take(torch.arange(len(aside)))
    with torch.no_grad():
        error = (x - coder.coder_.generator(coder.coder_.code(x))).square().mean()
    assert float(error) == pytest.approx(coder.init_errors_.min(), rel=1e-5)
    assert not hasattr(quick().fit(X), "init_errors_")
    assert coder.transform(X).shape == (256, 24)
    before = coder.components_.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the schedule is over
        coder.partial_fit(X)
    assert not np.array_equal(before, coder.components_)


def test_saved_with_its_number_of_starts(tmp_path):
    coder = quick(n_init=2).fit(X)
    coder.save(tmp_path / "run")
    again = SparseCoder.load(tmp_path / "run")
    assert again.n_init == 2
    assert abs(again.transform(X) - coder.transform(X)).max() == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_init": 0}, "n_init is 0, expected a whole number ≥ 1"),
        ({"n_init": 2, "precision": "bfloat16"}, "n_init is 2 and precision 'bfloat16', expected 'auto' or 'float32'"),
        ({"n_init": 2, "method": quick().fit(X).coder_}, "expected 1 for a composed model"),
    ],
)
def test_what_cannot_be_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        quick(**changes).fit(X)


def test_checkpoints_are_refused_with_several_starts():
    coder = quick(n_init=2)
    rows, standardiser = coder.begin(X)
    with pytest.raises(ValueError, match="n_init is 2, expected 1 with checkpoints"):
        coder.fit_rows(rows, standardiser=standardiser, on_checkpoint=lambda step, tensors: None)


SWEPT = [
    {"n_active": 2}, {"n_active": 4}, {"sparsity": 0.3, "n_active": None}, {"n_components": 20}, {"max_steps": 7},
    {"method": "topk"}, {"n_init": 2}, {"n_init": 2, "n_active": 5},
    {"random_state": 4},
]  # fmt: skip


@pytest.mark.usefixtures("one_refit")
@pytest.mark.parametrize(("settings", "simulation"), [(SWEPT, False), (SWEPT[:2], True)], ids=["all", "calibrated"])
def test_a_sweep_is_every_fit(settings, simulation, request):
    """Bit for bit on a CPU, for settings that go together and for those that cannot; some with their calibration."""
    if not simulation:
        request.getfixturevalue("no_simulation")
    swept = sweep([quick(**setting) for setting in settings], X)
    for setting, coder in zip(settings, swept, strict=True):
        alone = quick(**setting).fit(X)
        assert same_bits(coder.coder_.state_dict(), alone.coder_.state_dict())
        assert coder.target_active_ == alone.target_active_
        assert coder.n_steps_ == alone.n_steps_


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_a_sweep_trains_in_company(monkeypatch):
    """Settings that differ in sparsity alone are handed to `train_replicas` at once."""
    seen, own = [], several.train_replicas

    def counted(coders, *given, **named):
        seen.append(len(coders))
        return own(coders, *given, **named)

    monkeypatch.setattr(several, "train_replicas", counted)
    sweep([quick(n_active=count) for count in (2, 3, 4)], X)
    quick(n_init=2).fit(X)
    sweep([quick(random_state=seed) for seed in (0, 1, 7)], X)
    assert seen == [3, 2, 3]


def _rate_by_count(plan):
    """The default model, at a rate that depends on a setting in which coders of one sweep may differ."""
    coder, recipe = hard_gaussian(plan)
    return Built(coder, recipe.slowed(plan.target_active / 4))


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_a_sweep_trains_each_by_its_own_recipe(monkeypatch):
    """Those of one recipe together, as each would alone; from any iterable."""
    companies, own = [], several.train_replicas

    def counted(coders, *given, **named):
        companies.append(len(coders))
        return own(coders, *given, **named)

    settings = [{"n_active": 2}, {"n_active": 4}, {"n_active": 2, "random_state": 5}]
    with monkeypatch.context() as patched:
        patched.setattr(several, "train_replicas", counted)
        swept = sweep((quick(method=_rate_by_count, **setting) for setting in settings), X)
    assert companies == [2, 1]
    for setting, coder in zip(settings, swept, strict=True):
        alone = quick(method=_rate_by_count, **setting).fit(X)
        assert same_bits(coder.coder_.state_dict(), alone.coder_.state_dict())


@pytest.mark.parametrize("given", [SparseCoder(3), [SparseCoder(3), 3]])
def test_a_sweep_of_something_else_is_refused(given):
    with pytest.raises(TypeError, match="expected a list of SparseCoder"):
        sweep(given, X)


def test_a_sweep_checks_all_before_it_trains_one():
    coders = [quick(n_active=2), quick(method="nope")]
    with pytest.raises(ValueError, match="nope"):
        sweep(coders, X)
    assert not hasattr(coders[0], "coder_")


@pytest.mark.usefixtures("no_simulation")
def test_a_sweep_in_another_precision_is_every_fit():
    """Several train together in float32 only: those that ask for something else train as they would alone."""
    swept = sweep([quick(n_active=count, precision="bfloat16") for count in (2, 4)], X)
    for count, coder in zip((2, 4), swept, strict=True):
        alone = quick(n_active=count, precision="bfloat16").fit(X)
        assert same_bits(coder.coder_.state_dict(), alone.coder_.state_dict())
        assert not same_bits(coder.coder_.state_dict(), quick(n_active=count).fit(X).coder_.state_dict())


def test_one_that_diverges_does_not_spoil_a_sweep():
    """The others are what they are alone; what ended that one is raised when all is done, as its own `fit` raises it.
    The error of one group does not keep the next group from being fitted."""
    settings = {"method": "thresholded-laplacian", "max_steps": 60}
    coders = [quick(**settings, beta=beta) for beta in (1e-3, 1e12, 1e-2)] + [quick(max_steps=3)]
    with pytest.raises(Diverged) as alone:
        quick(**settings, beta=1e12).fit(X)
    with pytest.raises(Diverged) as raised:
        sweep(coders, X)
    assert str(raised.value) == str(alone.value)
    assert [hasattr(coder, "coder_") for coder in coders] == [True, False, True, True]
    for coder in coders[0], coders[2], coders[3]:
        assert same_bits(coder.coder_.state_dict(), coder.__class__(**coder.get_params()).fit(X).coder_.state_dict())


SGD_RECIPE = Recipe(1, 1, SGD, {})


@pytest.mark.parametrize(
    ("n_coders", "recipe", "told"),
    [
        (1, SGD_RECIPE, "it trains by the plain loop"),
        (3, SGD_RECIPE, "these 3 coders train in one batched pass"),
        (3, Recipe(1, 1, Adam, {}), None),  # for which there are no kernels with it either
        (3, Recipe(1, 1, SGD, {}, clip_norm=1.0), None),
    ],
    ids=["one", "three", "Adam", "clipped"],
)
def test_without_triton_coders_train_another_way(n_coders, recipe, told, monkeypatch):
    """A GPU build of torch may come without it: the next way is taken, with one warning where kernels would have been
    for such a recipe; another error is an error."""
    taken = []

    def batched(coders, *given, **named):
        taken.append(len(coders))
        return [None] * len(coders)

    monkeypatch.setattr(replicas, "train_batched", batched)
    monkeypatch.setattr(replicas, "train_in_turn", batched)
    own = replicas._engines("cuda", n_coders)
    monkeypatch.setattr(replicas, "_engines", lambda device, n: own)
    monkeypatch.setitem(sys.modules, "softspike.train.fused", None)
    train = partial(replicas.train_replicas, [None] * n_coders, None, recipe, seeds=[0] * n_coders)
    with pytest.raises(ModuleNotFoundError, match="softspike"):
        train()
    monkeypatch.delitem(sys.modules, "softspike.train.fused")
    for name in [
        name for name in sys.modules if name.startswith(("triton", "softspike.train.fused", "softspike.kernels"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    if told is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train()
    else:
        with pytest.warns(UserWarning, match=f"need Triton, which is not installed: {told}") as heard:
            train()
        assert len(heard) == 1
    assert taken == [n_coders]


def test_the_start_that_is_kept_is_calibrated_and_no_other(monkeypatch):
    """The simulation that probabilities come from takes longer than a short training: once, whatever `n_init`."""
    from softspike.model import VariationalCoder

    calls, own = [], VariationalCoder._calibrate_by_simulation

    def counted(self, *given):
        calls.append(self)
        return own(self, *given)

    monkeypatch.setattr(VariationalCoder, "_calibrate_by_simulation", counted)
    coder = quick(n_init=3).fit(X)
    assert calls == [coder.coder_]
    assert coder.coder_.calibration.fitted
