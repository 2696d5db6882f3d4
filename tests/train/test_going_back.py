"""Training that diverges goes back to the last good state and on with smaller steps; what is left undisturbed is not
changed by that, and what was disturbed can still be resumed bit for bit."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from command import softspike
from small import QUICK, quick, same_bits, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows, DataError
from softspike.fitting import Checkpoint
from softspike.methods import METHODS, Built
from softspike.run import RunFolder
from softspike.train import Diverged, Recovered


def often_checked(name, **changes):
    """The method, with losses looked at every 4 steps."""

    def builder(plan):
        coder, recipe = METHODS[name](plan)
        return Built(coder, replace(recipe, log_every=4, **changes))

    return builder


class Spoil:
    """Puts a NaN into a parameter after the given step, as often as that step comes by."""

    def __init__(self, step, group, times=1):
        self.step, self.group, self.left = step, group, times

    def logged(self, progress):
        if progress.step == self.step and self.left:
            self.left -= 1
            with torch.no_grad():
                progress.coder.parameter_groups()[self.group][0].mul_(torch.nan)

    def saved(self, progress): ...


CASES = [("hard-gaussian", "generator"), ("hard-gaussian", "inference"), ("fista", "generator"), ("topk", "inference")]


@pytest.mark.parametrize(("method", "group"), CASES)
def test_one_fault_is_survived(method, group):
    """It is noticed at the exact step, and training ends with finite weights; every state handed out was good."""
    saved, returns = [], []
    coder = SparseCoder(**QUICK, method=often_checked(method), max_steps=24)
    with pytest.warns(Recovered, match=r"diverged at step 13: the loss is not finite .* from step 8 with 0\.25 of its"):
        coder.fit_rows(
            ArrayRows(small_data()), observers=[Spoil(12, group)], checkpoint_every=8, on_rollback=returns.append,
            on_checkpoint=lambda step, tensors: saved.append((step, tensors)),
        )  # fmt: skip
    assert [(r.error.step, r.step, r.tries) for r in returns] == [(13, 8, 1)]
    assert [step for step, _ in saved] == [8, 16, 24]
    assert all(t["model.generator.weight"].isfinite().all() for _, t in saved)
    assert [int(tensors["recovery.tries"]) for _, tensors in saved] == [0, 1, 1]
    assert np.isfinite(coder.transform(small_data()).data).all()


def test_a_fault_that_comes_back_is_the_end_after_three_returns():
    coder, returns = SparseCoder(**QUICK, method=often_checked("topk"), max_steps=24), []
    with pytest.raises(Diverged) as caught, pytest.warns(Recovered):
        coder.fit_rows(
            ArrayRows(small_data()), observers=[Spoil(12, "inference", times=9)], checkpoint_every=8,
            on_rollback=returns.append,
        )  # fmt: skip
    assert [r.tries for r in returns] == [1, 2, 3]
    said = (
        "training diverged at step 13: the loss is not finite (total, misfit); going back 3 times, at last with 0.0156"
    )
    assert str(caught.value).startswith(said)
    assert "lower the learning rate" in str(caught.value)


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_a_rate_that_is_somewhat_too_high_is_lowered_until_it_works():
    """Of itself, without a fault from outside."""
    coder = quick(method=often_checked("hard-gaussian"), max_steps=60, learning_rate=100.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        coder.fit(small_data())
    assert 1 <= sum(issubclass(w.category, Recovered) for w in seen) <= 3
    assert coder.score(small_data()) > 0


class Worse:
    """Makes a dictionary grow, a little every time: the error rises and stays finite."""

    def __init__(self, factor):
        self.factor = factor

    def logged(self, progress):
        with torch.no_grad():
            progress.coder.generator.weight.mul_(self.factor)

    def saved(self, progress): ...


def test_an_error_that_rises_without_end_is_divergence():
    coder = SparseCoder(**QUICK, method=often_checked("gaussian"), max_steps=200, learning_rate=1e-9)
    with pytest.raises(Diverged, match=r"rose to \S+ per feature and does not fall"), pytest.warns(Recovered):
        coder.fit_rows(ArrayRows(small_data()), observers=[Worse(2.0)])


@pytest.mark.parametrize("method", METHODS)
def test_no_method_raises_a_false_alarm(method):
    with warnings.catch_warnings():
        warnings.simplefilter("error", Recovered)
        quick(method=often_checked(method), max_steps=60).fit(small_data())


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_a_run_that_went_back_is_resumed_bit_for_bit():
    """From the checkpoint before the return, and from the one after it."""
    rows, saved = ArrayRows(small_data()), {}
    settings = {**QUICK, "max_steps": 40, "learning_rate": 30.0, "method": often_checked("hard-gaussian")}
    with pytest.warns(Recovered):
        whole = SparseCoder(**settings).fit_rows(rows, on_checkpoint=saved.__setitem__, checkpoint_every=8)
    counts = {step: int(tensors["recovery.tries"]) for step, tensors in saved.items()}
    assert max(counts.values()) > min(counts.values()) or min(counts.values()) > 0
    for step, tensors in saved.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Recovered)
            again = SparseCoder(**settings).fit_rows(rows, resume=Checkpoint(step, tensors), checkpoint_every=8)
        assert same_bits(whole.model_tensors(), again.model_tensors()), step


def test_checkpoints_without_a_word_about_returns_are_resumed():
    """As versions wrote them that knew of none."""
    rows, saved = ArrayRows(small_data()), {}
    whole = quick().fit_rows(rows, on_checkpoint=saved.__setitem__, checkpoint_every=10)
    old = {name: value for name, value in saved[10].items() if not name.startswith("recovery.")}
    assert len(old) == len(saved[10]) - 2
    assert same_bits(whole.model_tensors(), quick().fit_rows(rows, resume=Checkpoint(10, old)).model_tensors())


def test_the_command_drops_the_lines_of_steps_that_were_undone(tmp_path):
    np.save(tmp_path / "data.npy", small_data())
    words = ["train", "data.npy", "-o", "run", "--components", 24, "--active", 3, "--rate", 100]
    outcome = softspike(*words, "--steps", 150, "--checkpoint-every", 50, "--log", "csv", folder=tmp_path)
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if line.startswith("softspike: training diverged at step ")]
    assert 1 <= len(told) <= 3
    steps = [line["step"] for line in RunFolder(tmp_path / "run").metrics()]
    assert steps == [50, 100, 150]
    assert [row.split(",")[0] for row in (tmp_path / "run/metrics.csv").read_text().splitlines()[1:]] == [
        str(step) for step in steps
    ]
    rates = [json.loads(line)["rate_generator"] for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert max(rates) <= 100 * 0.25
    assert not (tmp_path / "run/diverged.json").exists()


class Shrinking:
    """Rows of which half vanish after a while."""

    n_features = 12

    def __init__(self):
        self.rows, self.taken = ArrayRows(small_data(64)), 0

    def __len__(self):
        return 64 if self.taken < 10 else 32

    def take(self, indices):
        self.taken += 1
        if self.taken > 10 and int(indices.max()) >= 32:
            raise IndexError("index 60 is out of bounds")
        return self.rows.take(indices)


def test_data_that_shrinks_while_it_is_learned_from_is_one_sentence():
    with pytest.raises(
        DataError, match="had 64 rows when training began and has 32 now, expected it to stay as it was"
    ):
        quick(max_steps=50).fit_rows(Shrinking())
