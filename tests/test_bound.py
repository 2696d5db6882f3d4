"""`SparseCoder.bound`: a bound on the log density of the data in its own units."""

import math

import numpy as np
import pytest
import torch
from small import QUICK, small_data

from softspike import SparseCoder

VARIATIONAL = ["hard-gaussian", "thresholded-laplacian", "spike-and-slab", "gaussian"]


def fitted(x: np.ndarray, method: str = "hard-gaussian") -> SparseCoder:
    return SparseCoder(**QUICK, method=method, max_steps=30, verbose=False).fit(x)


@pytest.mark.parametrize("method", VARIATIONAL)
def test_it_is_the_models_own_less_the_change_of_units(method: str) -> None:
    """log p(x) = log p((x − mean)/s) − D·log s, by the same draws; to 1e-6."""
    x = small_data()
    coder = fitted(x, method)
    with torch.no_grad():
        standard = coder.standardiser_(torch.from_numpy(x))
        own = coder.coder_.bound(standard, 50, torch.Generator().manual_seed(0)).double().numpy()
    volume = x.shape[1] * math.log(float(coder.standardiser_.scale))
    found = coder.bound(x, n_samples=50)
    assert found.shape == (len(x),)
    np.testing.assert_allclose(found, own - volume, rtol=1e-6)


def test_data_in_other_units_has_another_density_by_just_that() -> None:
    """Eight times as large: every row loses D·log 8, to 1e-4 of a nat."""
    x = small_data()
    small, large = fitted(x).bound(x), fitted(8 * x).bound(8 * x)
    np.testing.assert_allclose(small - large, x.shape[1] * math.log(8), atol=1e-4)


def test_it_tightens_with_samples_and_does_not_change_from_call_to_call() -> None:
    x = small_data()
    coder = fitted(x)
    assert coder.bound(x, 1).mean() < coder.bound(x, 20).mean() < coder.bound(x, 400).mean()
    np.testing.assert_array_equal(coder.bound(x), coder.bound(x))


def test_one_sentence_where_there_is_no_law_or_no_sample() -> None:
    x = small_data()
    with pytest.raises(ValueError, match=r"method is 'topk', which has no law of codes"):
        fitted(x, "topk").bound(x)
    with pytest.raises(ValueError, match=r"n_samples is 0, expected a whole number"):
        fitted(x).bound(x, n_samples=0)
