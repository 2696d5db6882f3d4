"""NaN and divergence stop training with the step, the cause and the last good checkpoint."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from command import softspike
from small import QUICK, small_data

from softspike import SparseCoder
from softspike.data import ArrayRows
from softspike.methods import METHODS, Built
from softspike.run import read_tensors
from softspike.train import Diverged

# NaN by design: not placed yet.
UNTIL_CALIBRATED = {"model.cut", "model.correction.levels", "model.calibration.typical"}


class Spoil:
    """Puts a NaN into a parameter after the given step."""

    def __init__(self, step, group):
        self.step, self.group = step, group

    def logged(self, progress):
        if progress.step == self.step:
            with torch.no_grad():
                progress.coder.parameter_groups()[self.group][0].view(-1)[0] = torch.nan

    def saved(self, progress): ...


@pytest.mark.parametrize(("method", "group"), [(None, "generator"), (None, "inference"), ("fista", "generator")])
def test_nan_is_reported_at_the_first_step_it_spoils(method, group):
    """Checked every 4 steps, yet the step is exact; and no spoiled state is handed out as a checkpoint."""
    name, saved = method or SparseCoder().method, []

    def builder(plan):
        coder, recipe = METHODS[name](plan)
        return Built(coder, replace(recipe, log_every=4))

    coder = SparseCoder(**QUICK, method=builder, max_steps=40)
    with pytest.raises(Diverged, match="not finite") as caught:
        coder.fit_rows(
            ArrayRows(small_data()), observers=[Spoil(8, group)], checkpoint_every=4,
            on_checkpoint=lambda step, tensors: saved.append((step, tensors)),
        )  # fmt: skip
    assert caught.value.step == 9
    assert str(caught.value).startswith("training diverged at step 9: the loss is not finite (")
    assert [step for step, _ in saved] == [4, 8]
    weights = saved[0][1]
    assert all(weights[name].isfinite().all() for name in weights if name not in UNTIL_CALIBRATED)


@pytest.mark.parametrize("method", METHODS)
def test_an_absurd_learning_rate_is_divergence(method):
    with pytest.raises(Diverged) as caught:
        SparseCoder(**QUICK, method=method, max_steps=20, learning_rate=1e6).fit(small_data())
    assert 1 < caught.value.step <= 20
    assert re.search(r"not finite|reached \d", caught.value.cause)
    assert "lower the learning rate" in str(caught.value)


def test_partial_fit_diverges_in_the_same_words():
    coder = SparseCoder(**QUICK, max_steps=20, learning_rate=1e6)
    with pytest.raises(Diverged, match=r"training diverged at step \d+: .*; lower the learning rate"):
        coder.partial_fit(small_data(20 * 32))


@pytest.mark.parametrize("every", [1, 1000])
def test_the_command_names_the_last_good_checkpoint(tmp_path, every):
    np.save(tmp_path / "data.npy", small_data())
    words = ["train", "data.npy", "-o", "run", "--rate", 1e6, "--steps", 20, "--checkpoint-every", every]
    outcome = softspike(*words, folder=tmp_path)
    assert outcome.code == 1
    assert re.search(r"diverged at step \d+: the .* (not finite|reached)", outcome.sentence)
    if every == 1000:
        assert "no checkpoint had been written yet" in outcome.sentence
        return
    named = re.search(r"the last good checkpoint is (\S+);", outcome.sentence)
    tensors, metadata = read_tensors(tmp_path / named[1])
    assert int(metadata["step"]) < int(re.search(r"at step (\d+)", outcome.sentence)[1])
    assert all(value.isfinite().all() for name, value in tensors.items() if name not in UNTIL_CALIBRATED)
