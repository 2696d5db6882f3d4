"""Small runs end in the figures they ended in before. How and when these may be updated: tests/golden/README.md."""

import pytest
from golden.figures import CASES, figures_of, stored, tolerance


def test_every_case_is_stored():
    assert list(stored()) == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_figures_stay(case):
    found, expected = figures_of(case), stored()[case]
    assert found.keys() == expected.keys()
    moved = {
        name: (expected[name], value)
        for name, value in found.items()
        if value != pytest.approx(expected[name], rel=tolerance(case, name), abs=1e-6)
    }
    assert moved == {}, "results changed; see tests/golden/README.md"
