"""Replicas through one batched pass equal training in turn."""

import copy

import pytest
import torch

from softspike.data import TensorRows
from softspike.methods.registry import METHODS, Plan, build
from softspike.train import NotTogether, train_batched, train_in_turn, train_replicas

ROWS = TensorRows(torch.randn(60, 12, generator=torch.Generator().manual_seed(3)))
PLAN = Plan(12, 20, 0.15, n_steps=12, batch_size=16)
SEEDS = [0, 5, 6]


def coders_of(method):
    made = [build(METHODS[method], PLAN, seed) for seed in SEEDS]
    return [coder for coder, _ in made], made[0].recipe


@pytest.mark.parametrize("method", ["hard-gaussian", "topk", "batchtopk", "jumprelu"])
def test_batched_equals_in_turn(method):
    """Weights, levels, prices and counts after twelve steps; sums in another order: 1e-4 of the largest value."""
    together, recipe = coders_of(method)
    alone = copy.deepcopy(together)
    assert train_replicas(together, ROWS, recipe, seeds=SEEDS, engine=train_batched) == [None] * 3
    train_replicas(alone, ROWS, recipe, seeds=SEEDS, engine=train_in_turn)
    for one, other in zip(together, alone, strict=True):
        for value, wanted in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
            torch.testing.assert_close(value, wanted, rtol=1e-3, atol=1e-4, equal_nan=True)


def test_trained_replicas_own_their_memory():
    coders, recipe = coders_of("topk")
    train_replicas(coders, ROWS, recipe, seeds=SEEDS, engine=train_batched)
    storages = {p.untyped_storage().data_ptr() for coder in coders for p in coder.parameters()}
    assert len(storages) == sum(1 for coder in coders for _ in coder.parameters())


def test_a_loss_that_draws_samples_is_refused_in_words():
    coders, recipe = coders_of("thresholded-laplacian")
    with pytest.raises(NotTogether, match=r"VariationalCoder cannot be batched .*random"):
        train_replicas(coders, ROWS, recipe, seeds=SEEDS, engine=train_batched)
    assert all(bool(p.isfinite().all()) for coder in coders for p in coder.parameters())
