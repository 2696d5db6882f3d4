"""`positive=True` tells where data has an offset, which sums of a few non-negative parts cannot be."""

import warnings

import numpy as np
import pytest

from softspike import SparseCoder
from softspike.data import synthetic
from softspike.notice import Notice


def told(x: np.ndarray, n_active: float, **options: object) -> list[str]:
    """What is said before training."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        SparseCoder(64, n_active=n_active, **{"positive": True, **options}).begin(x)
    return [str(each.message) for each in heard if issubclass(each.category, Notice)]


@pytest.mark.parametrize("n_active", [1, 4, 16, 32])
@pytest.mark.parametrize("atoms", ["of both signs", "of one sign"])
def test_sums_of_parts_have_none(n_active, atoms):
    """Of one sign parts add up most."""
    known = synthetic(1000, 32, 64, n_active, seed=0)
    dictionary = known.dictionary.abs() if atoms == "of one sign" else known.dictionary
    assert told((known.codes @ dictionary.T).numpy(), n_active) == []


def test_an_offset_is_told_where_codes_must_not_be_negative():
    x = synthetic(1000, 32, 64, 4, seed=0, noise=0.1).x.numpy() + 2
    (said,) = told(x, 4)
    assert "sums of 4 non-negative components have 2.8 at most: subtract the offset" in said
    assert told(x - 2, 4) == []
    assert told(x, 4, positive=False) == []
    assert told(x, 4, method="topk") == []  # it keeps the mean as its bias
