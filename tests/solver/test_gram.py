"""AᵀA is computed once for one dictionary, and never of another one."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from softspike import SparseCoder
from softspike.solver.correction import SupportCorrection
from softspike.solver.gram import KnownGram


def atoms(seed=0, n=7, d=5, dtype=torch.float32):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).to(dtype)


def test_it_is_computed_once():
    known = KnownGram()
    first = known(atoms())
    torch.testing.assert_close(first, atoms().T @ atoms(), rtol=0, atol=0)
    assert known(atoms()) is first
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(KnownGram(), [atoms()] * 50))
    assert all(each is found[0] for each in found)


@pytest.mark.parametrize(
    "other", [atoms(1), atoms(0, 8), atoms(0, 7, 4), atoms(dtype=torch.float64)], ids=["values", "D", "d", "dtype"]
)
def test_another_dictionary_is_noticed(other):
    known = KnownGram()
    known(atoms())
    torch.testing.assert_close(known(other), other.T @ other, rtol=0, atol=0)


def test_atoms_that_change_where_they_are_are_noticed():
    """Compiled loops write into weights behind torch's back, so that no version number tells."""
    known, same = KnownGram(), atoms()
    known(same)
    same.numpy()[0, 0] = 100.0
    torch.testing.assert_close(known(same), same.T @ same, rtol=0, atol=0)


def test_copies_and_files_hold_none():
    correction, wide = SupportCorrection(2), atoms(d=500)
    size = len(pickle.dumps(correction))
    correction.gram(wide)
    assert len(pickle.dumps(correction)) == size
    twin = copy.deepcopy(correction)
    assert twin.gram is not correction.gram
    torch.testing.assert_close(twin.gram(wide), wide.T @ wide, rtol=0, atol=0)


@pytest.mark.usefixtures("no_simulation")
def test_a_model_that_goes_on_learning_codes_by_its_new_atoms():
    """Codes after more steps are those of a copy that never knew the old AᵀA."""
    x = torch.randn(1200, 16, generator=torch.Generator().manual_seed(0)).numpy()
    coder = SparseCoder(256, n_active=4, max_steps=100, random_state=0, verbose=False).partial_fit(x)
    before = coder.transform(x)
    coder.partial_fit(x)
    after, fresh = coder.transform(x), pickle.loads(pickle.dumps(coder)).transform(x)
    assert abs(after - before).max() > 1e-3
    assert abs(after - fresh).max() == 0
