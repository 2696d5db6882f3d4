"""The bare loops that the library is timed against do the same arithmetic as the methods they stand for."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bare import RIVALS, Setting
from benchmarks.step import measure, sides

from softspike import SparseCoder


@pytest.mark.parametrize("method", RIVALS)
def test_a_rival_ends_in_the_same_dictionary(method):
    data = np.random.default_rng(0).standard_normal((256, 16), dtype=np.float32)
    both = sides(method, data, Setting(16, 24, 3.0, n_steps=2000), batch=32)  # raises SystemExit where it does not
    assert (measure(both, repeats=1, turn=2) > 0).all()


def test_the_default_method_has_a_rival():
    assert SparseCoder().method in RIVALS
