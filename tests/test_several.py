"""Several starts and several settings: each as if trained alone, the best start kept."""

import warnings

import numpy as np
import pytest
import torch
from small import quick, same_bits, small_data

from softspike import SparseCoder, sweep
from softspike.data import StandardisedRows
from softspike.fitting import several
from softspike.fitting.aside import split
from softspike.train import train_batched

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
        assert same_bits(outcome.fitted.coder.state_dict(), alone.coder_.state_dict())
    assert coder.init_errors_ == pytest.approx([outcome.error for outcome in outcomes])


@pytest.mark.parametrize(
    "method", ["hard-gaussian", "laplacian", "thresholded-laplacian", "spike-and-slab", "jumprelu"]
)
def test_each_start_of_one_batched_pass_is_as_if_alone(method, monkeypatch, recwarn):
    """The pass that a GPU takes, here on a CPU, without a warning: parameters to 5e-3 of their norm."""
    monkeypatch.setattr("softspike.train.replicas._engines", lambda device, n_coders: [train_batched])
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


@pytest.mark.parametrize("given", [SparseCoder(3), [SparseCoder(3), 3]])
def test_a_sweep_of_something_else_is_refused(given):
    with pytest.raises(TypeError, match="expected a list of SparseCoder"):
        sweep(given, X)
