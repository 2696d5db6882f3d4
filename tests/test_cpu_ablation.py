"""What is switched off in `benchmarks.cpu_ablation` is off, and the step without it is the same step."""

import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

pytest.importorskip("numba", reason="compiled code needs numba")
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.cpu_ablation import SWITCHES, without

from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf
from softspike.train import train

STUDY = Study(40, 72, n_steps=8, batch_size=100, widths=(48, 33))


def trained(off):
    """Parameters after eight steps from the same weights and seed, with this switched off."""
    coder, recipe = build_published(PUBLISHED["thresholded-laplacian"], STUDY, SCRIPTS, BestOf(12), seed=3)
    rows = TensorRows(torch.randn(400, STUDY.n_features, generator=torch.Generator().manual_seed(0)))
    without(lambda: train(coder, rows, recipe, seed=5), off)()
    return torch.cat([parameter.detach().flatten() for parameter in coder.parameters()])


@pytest.mark.parametrize("name", SWITCHES)
def test_a_step_without_it_is_the_same(name):
    """To 1e-4 of the largest weight; a search in torch draws other numbers, and goes elsewhere."""
    calls = [(target, Mock(side_effect=stand_in)) for target, stand_in in SWITCHES[name].off]
    expected, found = trained([]), trained(calls)
    for target, stand_in in calls:
        assert stand_in.called, target
    distance = float((found - expected).abs().max() / expected.abs().max())
    assert distance > 1e-3 if name.startswith("samples searched in torch") else distance < 1e-4


def test_each_is_beside_a_variant_that_is_measured():
    assert {switch.beside for switch in SWITCHES.values()} <= {"as it is", *SWITCHES}
