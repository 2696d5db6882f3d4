"""The bare loops that the library is timed against do the same arithmetic as the methods they stand for."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bare import RIVALS, Setting
from benchmarks.best_of_bare import BareTraining, FirstBestOf
from benchmarks.best_of_steps import BY_HAND, METHODS, bare_copy, built, products
from benchmarks.step import measure, sides

from softspike import SparseCoder
from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf, BestOfPlain
from softspike.schedule import Constant
from softspike.train import FullPrecision, batch_rows, step_random, train


@pytest.mark.parametrize("method", RIVALS)
def test_a_rival_ends_in_the_same_dictionary(method):
    data = np.random.default_rng(0).standard_normal((256, 16), dtype=np.float32)
    both = sides(method, data, Setting(16, 24, 3.0, n_steps=2000), batch=32)  # raises SystemExit where it does not
    assert (measure(both, repeats=1, turn=2) > 0).all()


class Losses:
    """An observer that keeps every loss."""

    def __init__(self):
        self.seen = []

    def logged(self, progress):
        self.seen.append(float(progress.loss.total))

    def saved(self, progress): ...


class DoubleRows(TensorRows):
    """Rows as they are, not in float32."""

    def take(self, indices):
        return self.tensor[indices.long()]


@pytest.mark.parametrize("n_samples", [1, 6, 20])
@pytest.mark.parametrize("objective", [BestOfPlain, BestOf])
@pytest.mark.parametrize("model", BY_HAND)
def test_the_hand_written_best_of_j_is_ours(model, objective, n_samples):
    """Losses to 1e-6, as the loop passes them on in float32, and all weights to 1e-10 after eight steps of float64."""
    study = Study(n_features=16, n_components=24, n_steps=60, batch_size=32, widths=(40, 20))
    coder, recipe = build_published(PUBLISHED[METHODS.get(model, model)], study, SCRIPTS, objective(n_samples))
    coder.posterior.warm_up = Constant(1.0)
    coder.double()
    x = torch.randn(100, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    bare = bare_copy(coder)
    started, losses = bare.atoms.detach().clone(), []
    training = BareTraining(bare, 60, n_samples, beta=float(coder.beta))
    for t in range(8):
        norm = 2 / 16 * 1e-4 * float(bare.atoms.detach().square().sum())  # there by weight decay, here in the loss
        losses.append(float(training.step(x[batch_rows(0, t, 100, 32).long()], t, step_random(0, t))) + norm)
    ours = Losses()
    train(coder, DoubleRows(x), replace(recipe, n_steps=8, log_every=1), observers=[ours])
    assert losses == pytest.approx(ours.seen, rel=1e-6)
    assert float((bare.atoms - started).detach().abs().max()) > 1e-3
    for (name, mine), its in zip(bare.named_parameters(), bare_copy(coder).parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=0, atol=1e-10, msg=name)


@pytest.mark.parametrize("model", BY_HAND)
def test_the_loss_as_written_first_is_the_same_in_law(model):
    """Mean loss of 200 passes and the gradients of their sum, to 2 % and 5 % of what the tuned loss gives."""
    study = Study(n_features=16, n_components=24, n_steps=60, batch_size=32, widths=(40, 20))
    coder, _ = build_published(PUBLISHED[METHODS.get(model, model)], study, SCRIPTS, BestOf(4))
    x, seen = torch.randn(32, 16, generator=torch.Generator().manual_seed(0)), []
    torch.manual_seed(1)
    for bare in (bare_copy(coder), bare_copy(coder, FirstBestOf)):
        loss = torch.stack([bare.losses(x, 4, 0.1).mean() for _ in range(200)]).mean()
        loss.backward()
        seen.append((float(loss.detach()), torch.cat([each.grad.flatten() for each in bare.parameters()])))
    (tuned, slopes), (first, its) = seen
    assert first == pytest.approx(tuned, rel=0.02)
    assert float((its - slopes).norm() / slopes.norm()) < 0.05


def test_the_default_method_has_a_rival():
    assert SparseCoder().method in RIVALS


def test_products_alone_are_known_where_gradients_are_written_out(monkeypatch):
    """They move every weight, and hardly: what follows costs what it would cost in training."""
    pytest.importorskip("numba", reason="compiled code needs numba")
    coders = []
    monkeypatch.setattr("benchmarks.best_of_steps.built", lambda *given: coders.append(built(*given)) or coders[-1])
    run = products(2, "mlp", FullPrecision())
    before = {name: value.detach().clone() for name, value in coders[0].named_parameters()}
    run()
    for name, value in coders[0].named_parameters():
        assert 0 < float((value.detach() - before[name]).norm()) < 1e-2 * float(before[name].norm() + 1), name
    assert products(2, "unrolled", FullPrecision()) is None
