"""The measures of reconstruction against scikit-learn's, and where nothing varies."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score

from softspike.metric import (
    active_count,
    dead_components,
    explained_share,
    explained_variance,
    pca_explained_variance,
    sparse_coding_loss,
)


@pytest.fixture
def x():
    return torch.randn(40, 6, dtype=torch.float64) * torch.arange(1.0, 7.0) + 3


def test_explained_variance_is_the_variance_weighted_r2(x):
    guess = x + torch.randn_like(x)
    expected = r2_score(x.numpy(), guess.numpy(), multioutput="variance_weighted")
    assert explained_variance(x, guess) == pytest.approx(expected, rel=1e-12)
    assert explained_variance(x, x) == 1
    assert explained_variance(x, x.mean(0).expand_as(x)) == pytest.approx(0, abs=1e-12)


def test_explained_variance_of_float32_data_far_from_zero():
    """The mean is taken in double precision: 1e4 + unit noise must not drown."""
    x = 1e4 + torch.randn(20_000, 2)
    assert explained_variance(x, x.mean(0).expand_as(x)) == pytest.approx(0, abs=1e-3)


def test_where_nothing_varies_only_perfection_counts():
    x = torch.ones(5, 3)
    assert explained_variance(x, x) == 1
    assert explained_variance(x, x + 1) == 0
    assert explained_share(0.0, 0.0) == 1


@pytest.mark.parametrize("shape", [(40, 6), (5, 8), (1, 3), (30, 1)])
@pytest.mark.parametrize("n_directions", [1, 3, 100])
def test_pca_is_scikit_learns(shape, n_directions):
    x = torch.randn(shape, dtype=torch.float64)
    if shape[0] == 1:
        assert pca_explained_variance(x, n_directions) == 1  # nothing to explain
        return
    ratios = PCA().fit(x.numpy()).explained_variance_ratio_
    assert pca_explained_variance(x, n_directions) == pytest.approx(ratios[:n_directions].sum(), rel=1e-9)


def test_counts():
    codes = torch.tensor([[0.0, 1.0, 0.0], [0.0, -2.0, 0.0], [1e-30, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert active_count(codes) == 0.75
    assert dead_components(codes) == 1


def test_sparse_coding_loss_is_the_papers():
    x, z, guess = torch.randn(7, 4), torch.randn(7, 3), torch.randn(7, 4)
    rows = zip(x.numpy(), guess.numpy(), z.numpy(), strict=True)
    expected = np.mean([0.5 * np.square(a - b).sum() + 20 * np.abs(c).sum() for a, b, c in rows])
    assert sparse_coding_loss(x, guess, z) == pytest.approx(expected, rel=1e-5)
    nothing = sparse_coding_loss(x, torch.zeros_like(x), torch.zeros_like(z))
    assert nothing == pytest.approx(0.5 * float(x.square().sum()) / 7, rel=1e-5)
