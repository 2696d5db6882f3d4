"""The faults of `drills.mutants` still fit the code: each can be put in, and the tests that should notice are there."""

from pathlib import Path

import pytest
from drills.faults import MUTANTS
from drills.mutants import ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_can_be_put_in(mutant):
    source = (ROOT / "src/softspike" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    assert mutant.new != mutant.old
    for name in mutant.tests.split():
        assert (Path(ROOT) / "tests" / name).is_file()
