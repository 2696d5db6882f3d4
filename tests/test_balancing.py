"""Rows kept aside stand for all: weights that say how, and whether there are any."""

import numpy as np
import pytest
import torch

from softspike import SparseCoder
from softspike.data import TensorRows, synthetic
from softspike.fitting.aside import balancing_weights, split


def energies(n, spread, seed):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).mul(spread).exp()


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_balance_what_they_can(spread, seed):
    """None is negative, their sum is 1, and where energies are alike the mean energy is the population's, to 1e-6."""
    aside, population = energies(500, spread, seed), energies(20_000, spread, 100 + seed)
    weights = balancing_weights(aside, population)
    assert bool((weights >= 0).all())
    assert float(weights.sum()) == pytest.approx(1, abs=1e-6)
    if spread <= 0.3:
        assert float(weights @ aside) == pytest.approx(float(population.mean()), rel=1e-6)


@pytest.mark.usefixtures("no_simulation")
def test_the_count_holds_where_rows_differ_by_orders_of_magnitude():
    """Rows scaled by e^{2.5 N(0,1)}: 2 active of 32 on unseen rows within a tenth, for each of four seeds."""
    for seed in range(4):
        scale = np.exp(2.5 * np.random.default_rng(seed).standard_normal((14_000, 1)))
        x = (synthetic(14_000, 16, 32, 2, seed).x.numpy() * scale).astype(np.float32)
        settings = {"n_active": 2, "max_steps": 60, "dictionary_refits": 0, "random_state": seed, "verbose": False}
        coder = SparseCoder(32, **settings).fit(x[:6000])
        assert coder.transform(x[6000:]).nnz / 8000 == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize(("n_rows", "n_features", "unseen"), [(2000, 5, True), (150, 5, False), (300, 340_000, False)])
def test_whether_rows_are_kept_from_training_is_said(n_rows, n_features, unseen):
    """Few rows, or rows of which too few fit into memory, serve for both."""
    rows = TensorRows(torch.zeros(1, 1).expand(n_rows, n_features))
    learning, kept = split(rows, 4)
    assert kept.unseen is unseen
    assert len(learning) == n_rows - (len(kept.rows) if unseen else 0)


@pytest.mark.usefixtures("no_simulation")
@pytest.mark.parametrize("n_init", [1, 2])
@pytest.mark.parametrize(("distinct", "times", "told"), [(100, 10, True), (700, 1, False), (700, 2, True)])
def test_rows_that_come_more_than_once_are_told(distinct, times, told, n_init, recwarn):
    """Those kept aside are then no unseen ones: one warning, however many starts."""
    x = np.tile(synthetic(distinct, 8, 12, 2, 0).x.numpy(), (times, 1))
    SparseCoder(12, n_active=2, max_steps=2, dictionary_refits=0, n_init=n_init, verbose=False).fit(x)
    heard = [str(one.message) for one in recwarn if "have equals among those that were trained on" in str(one.message)]
    assert len(heard) == told
