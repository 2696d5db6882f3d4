"""The variants that the fused step is measured against do the same arithmetic as it."""

import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="kernels need Triton")

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ablation import scorers
from benchmarks.timing import epochs, fused, in_turns, plain_us, rerun
from benchmarks.written import WrittenGradients

from softspike.methods.published import Study
from softspike.objective import BestOf, BestOfPlain

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = Study(n_features=11, n_components=19, n_steps=40, batch_size=9, widths=(21, 17))


def a_run(**options):
    torch.manual_seed(1)
    return fused(DEVICE, 2, 4, SMALL, per_epoch=2, **options)


def weights(run):
    r = run.step.replicas
    parts = [r.atoms, *(layer.weight for layer in r.layers), *(layer.bias for layer in r.layers)]
    return torch.cat([part.flatten() for part in [*parts, r.families[0].affine.weight, r.families[0].affine.bias]])


@pytest.fixture(scope="module")
def four_steps():
    run = a_run()
    for _ in range(2):
        run.run_epoch()
    return weights(run)


@pytest.mark.parametrize("options", [{"kind": WrittenGradients}, {"ahead": 0}, {"ahead": 1}], ids=str)
def test_a_variant_ends_in_the_same_weights(four_steps, options):
    """Sums in another order, on a GPU with tf32 products: 2e-5 and 2e-3 of the weights' norm."""
    run = rerun(a_run(), 2, **options)
    before = weights(run).clone()
    assert epochs(run, 2) > 0
    assert (weights(run) - before).norm() > 1e-3 * before.norm()
    assert (weights(run) - four_steps).norm() < (2e-3 if DEVICE == "cuda" else 2e-5) * before.norm()


def test_scoring_is_timed_in_every_way():
    run = a_run()
    run.run_epoch()
    times = in_turns(scorers(run.step, at_once=1), turns=1)
    assert next(iter(times)) == "resident, bfloat16"
    assert all(row["us"] > 0 for row in times.values())


@pytest.mark.parametrize("objective", [BestOf(3), BestOfPlain(3)], ids=str)
def test_the_plain_loop_is_timed_after_its_first_part(objective):
    assert plain_us(objective, True, DEVICE, n_steps=10, study=SMALL) > 0
