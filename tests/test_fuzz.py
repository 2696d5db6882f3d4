"""The fuzz drill in small: mutated files of every kind, and only the documented error comes out."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from drills.fuzz import MOST_SECONDS, fuzz
from drills.targets import TARGETS


@pytest.mark.parametrize("kind", TARGETS)
def test_mutated_files_are_read_or_refused(kind):
    inputs = 100 if kind == "run folder" else 400
    tally = fuzz(kind, inputs, workers=1, first=10**6)  # other inputs than those of the drill
    assert tally.faults == []
    assert tally.out_of_memory == 0
    assert tally.slowest < MOST_SECONDS
    assert tally.refused > inputs / 3  # the injuries were felt
