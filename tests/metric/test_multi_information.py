"""Multi-information and total correlation on codes whose dependence is known."""

import math

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import norm

from softspike.methods.published import PUBLISHED, build_published
from softspike.metric import gaussian_total_correlation, multi_information, prior_codes, published_edges
from softspike.metric.multi_information import bin_codes

# What the paper's Table 1 reports for trained models (J = 1) and a prior that has seen no data also reaches.
PRIOR_ALONE = {"gaussian": 734, "laplacian": 535, "thresholded-gaussian": 167}


def pair(rho, n, seed=0):
    """n draws of two standard normals of correlation ρ."""
    e = np.random.default_rng(seed).standard_normal((n, 2))
    return np.stack([e[:, 0], rho * e[:, 0] + math.sqrt(1 - rho**2) * e[:, 1]], axis=1)


def test_the_edges_are_the_published_ones():
    edges = published_edges()
    assert len(edges) == 22
    assert edges[0] == -2
    assert edges[-1] == 2
    assert list(edges[10:12]) == [-1e-50, 1e-50]
    assert len(published_edges(30)) == 32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_those_of_digitize(dtype):
    edges = published_edges()
    tiny = np.finfo(dtype).smallest_subnormal
    values = np.concatenate([edges.astype(dtype), [0, -0.0, tiny, -tiny, 3, -3, np.inf], np.linspace(-3, 3, 500)])
    codes = values.astype(dtype)[:, None]
    expected = np.digitize(codes.astype(np.float64), edges)
    for given in (codes, torch.from_numpy(codes), sparse.csr_matrix(codes)):
        assert (expected == bin_codes(given, edges).T).all()


def test_independent_codes_have_none():
    """Enough samples for two components: corrected and Gaussian estimates are 0 within 0.01 bits."""
    codes = torch.from_numpy(pair(0.0, 40_000))
    found = multi_information(codes)
    assert abs(found.corrected) < 0.01
    assert abs(gaussian_total_correlation(codes)) < 0.001


@pytest.mark.parametrize("rho", [0.3, 0.8, -0.8])
def test_a_gaussian_pair_has_its_closed_form(rho):
    """−½·log₂(1 − ρ²); fine bins lose little of it (within 3 % and 0.02 bits at 200,000 draws)."""
    exact = -0.5 * math.log2(1 - rho**2)
    codes = pair(rho, 200_000)
    assert multi_information(codes, np.linspace(-4, 4, 41)).corrected == pytest.approx(exact, rel=0.03, abs=0.02)
    assert gaussian_total_correlation(torch.from_numpy(codes)) == pytest.approx(exact, rel=0.01, abs=0.005)


def test_entropies_are_those_of_the_bins():
    """One Gaussian component: Σ −p·log₂p over the exact bin probabilities, within 0.01 bits at 100,000 draws."""
    scale = math.sqrt(0.1)
    p = np.diff(norm.cdf(np.concatenate([[-np.inf], published_edges(), [np.inf]]), scale=scale))
    p = p[p > 0]
    codes = scale * np.random.default_rng(0).standard_normal((100_000, 1))
    found = multi_information(codes)
    assert found.marginal == pytest.approx(-(p * np.log2(p)).sum(), abs=0.01)
    assert found.published == pytest.approx(0, abs=1e-9)  # one component: Σ H(zᵢ) is H(z)


def test_many_components_saturate_and_the_correction_says_so():
    """Strongly dependent and independent codes: the joint entropy is log₂N for both; linear statistics differ."""
    shared = torch.randn(2000, 1)
    dependent, independent = 0.5 * shared + 0.5 * torch.randn(2000, 64), torch.randn(2000, 64)
    for codes in (dependent, independent):
        assert multi_information(codes).joint == pytest.approx(math.log2(2000), abs=1e-9)
        assert multi_information(codes).corrected == pytest.approx(0, abs=1e-9)
    assert gaussian_total_correlation(dependent) > 20
    assert abs(gaussian_total_correlation(independent)) < 1


@pytest.mark.parametrize("name", PRIOR_ALONE)
def test_the_prior_alone_reaches_the_papers_figures(name):
    codes = prior_codes(build_published(PUBLISHED[name]).coder, 16_000, torch.Generator().manual_seed(0))
    assert multi_information(codes).published == pytest.approx(PRIOR_ALONE[name], rel=0.01)


@pytest.mark.parametrize(
    ("name", "activity"),
    [
        ("spike-and-slab", 0.1),
        ("thresholded-laplacian", math.exp(-2.5)),
        ("thresholded-laplacian-gamma", (1 + 1 / (0.1 * 12)) ** -3),
        ("gaussian", 1.0),
    ],
)
def test_prior_codes_are_as_sparse_as_the_prior(name, activity):
    codes = prior_codes(build_published(PUBLISHED[name]).coder, 1000, torch.Generator().manual_seed(0))
    assert codes.shape == (1000, 256)
    assert float((codes != 0).double().mean()) == pytest.approx(activity, abs=0.005)


def test_total_correlation_leaves_out_what_never_varies_and_needs_enough_codes():
    codes = torch.from_numpy(pair(0.6, 5000))
    padded = torch.cat([codes, torch.zeros(5000, 3), torch.full((5000, 1), 2.0)], dim=1)
    assert gaussian_total_correlation(padded) == pytest.approx(gaussian_total_correlation(codes), abs=1e-12)
    with pytest.raises(ValueError, match="10 codes of 20 varying components"):
        gaussian_total_correlation(torch.randn(10, 20))


def test_total_correlation_is_unbiased_in_small_samples():
    """200 sets of 60 draws in 20 dimensions: the plain estimate would be about 5 bits too high."""
    found = [gaussian_total_correlation(torch.randn(60, 20)) for _ in range(200)]
    assert np.mean(found) == pytest.approx(0, abs=0.3)
