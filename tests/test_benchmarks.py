"""The bare loops that the library is timed against do the same arithmetic as the methods they stand for."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bare import RIVALS, Setting
from benchmarks.best_of_steps import built, products
from benchmarks.step import measure, sides

from softspike import SparseCoder
from softspike.train import FullPrecision


@pytest.mark.parametrize("method", RIVALS)
def test_a_rival_ends_in_the_same_dictionary(method):
    data = np.random.default_rng(0).standard_normal((256, 16), dtype=np.float32)
    both = sides(method, data, Setting(16, 24, 3.0, n_steps=2000), batch=32)  # raises SystemExit where it does not
    assert (measure(both, repeats=1, turn=2) > 0).all()


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
