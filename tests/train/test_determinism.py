"""The same seed gives the same weights, bit for bit, whatever else draws random numbers."""

import numpy as np
import pytest
import torch
from small import QUICK, bits, same_bits, small_data

from softspike import SparseCoder
from softspike.methods import METHODS
from softspike.train import batch_rows, step_random


def fitted(method, seed=0):
    return SparseCoder(**{**QUICK, "random_state": seed}, method=method, max_steps=6).fit(small_data())


@pytest.mark.parametrize("method", METHODS)
def test_two_runs_are_the_same(method):
    one = fitted(method)
    torch.rand(7)
    np.random.rand(7)
    other = fitted(method)
    assert same_bits(one.model_tensors(), other.model_tensors())
    assert not same_bits(one.model_tensors(), fitted(method, seed=1).model_tensors())


def test_training_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    fitted(next(iter(METHODS)))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(100, 10), (103, 10), (7, 10), (1, 1)])
def test_an_epoch_visits_every_row_at_most_once_in_a_fresh_order(n_rows, batch_size):
    per_epoch = max(n_rows // batch_size, 1)
    epochs = [
        torch.cat([batch_rows(5, epoch * per_epoch + i, n_rows, batch_size) for i in range(per_epoch)])
        for epoch in range(3)
    ]
    for rows in epochs:
        assert len(rows.unique()) == len(rows) == per_epoch * min(batch_size, n_rows)
        assert int(rows.min()) >= 0
        assert int(rows.max()) < n_rows
    if n_rows > 10:
        assert len({bits(rows) for rows in epochs}) == 3


def test_seeds_steps_and_processes_each_have_noise_of_their_own():
    """No two of them share a single number, and each is the same every time it is asked for."""
    cases = [(seed, step, rank) for seed in (0, 1, 2) for step in (0, 1, 2) for rank in (0, 1, 2)]
    drawn = [torch.rand(100, generator=step_random(seed, step, "cpu", rank)) for seed, step, rank in cases]
    assert len(torch.cat(drawn).unique()) > 0.999 * 100 * len(cases)
    for (seed, step, rank), values in zip(cases, drawn, strict=True):
        assert torch.equal(values, torch.rand(100, generator=step_random(seed, step, "cpu", rank)))
