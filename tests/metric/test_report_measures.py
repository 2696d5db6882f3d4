"""Rate–distortion, consistency under noise and simulated calibration: their ends and special cases are known."""

import copy

import pytest
import torch
from small import quick, small_data

from softspike.metric import (
    explained_variance,
    pca_explained_variance,
    pca_residuals,
    rate_distortion,
    simulated_calibration,
    support_consistency,
)
from softspike.solver import omp_at_mean_count, omp_residuals


@pytest.fixture(scope="module")
def fitted():
    coder = quick(max_steps=300).fit(small_data(600))
    return coder, coder.standardiser_(torch.from_numpy(small_data(600)))


@pytest.mark.parametrize(("n", "width"), [(60, 12), (8, 12), (12, 12)])
def test_components_of_the_data_itself_leave_what_the_spectrum_says(n, width):
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(n)) + 3
    variance = float((x - x.mean(0)).double().square().sum())
    left = pca_residuals(x, [0, 1, 3, width], fit=x)
    assert left[0] == pytest.approx(variance, rel=1e-6)
    for k, residual in zip([1, 3, width], left[1:], strict=True):
        assert 1 - float(residual) / variance == pytest.approx(pca_explained_variance(x, k), abs=1e-5)


def test_components_of_other_rows_explain_less():
    random = torch.Generator().manual_seed(0)
    x, fit = torch.randn(40, 12, generator=random), torch.randn(400, 12, generator=random)
    assert pca_residuals(x, [3], fit)[0] > pca_residuals(x, [3], x)[0]


def test_one_pursuit_leaves_what_separate_ones_do():
    random = torch.Generator().manual_seed(0)
    x, atoms = torch.randn(50, 10, generator=random), torch.randn(10, 30, generator=random)
    counts = [0, 0.5, 2, 4]
    left = omp_residuals(x, atoms, counts)
    for count, residual in zip(counts, left, strict=True):
        codes = omp_at_mean_count(x, atoms, count)
        plain = (x - codes @ atoms.T).square().sum(-1)
        torch.testing.assert_close(residual.float(), plain, rtol=1e-4, atol=1e-4)


def test_a_frontier_rises_and_passes_through_the_coder(fitted):
    coder, x = fitted
    found = rate_distortion(coder.coder_, x[:200], [1, 2, 4], fit=x)
    assert found.n_samples == 200
    assert found.active == pytest.approx([1, 2, 4], rel=0.03)
    for curve in (found.explained, found.omp, found.pca):
        assert curve == sorted(curve)
        assert all(-0.1 < value <= 1 for value in curve)
    here = coder.coder_.code(x[:200]).detach()
    count = float((here != 0).sum(-1).double().mean())
    at = rate_distortion(coder.coder_, x[:200], [count], fit=x)
    assert at.explained[0] == pytest.approx(
        explained_variance(x[:200], coder.coder_.generator(here).detach()), abs=0.01
    )


def test_the_frontier_leaves_the_coder_alone(fitted):
    coder, x = fitted
    before = coder.coder_.code(x)
    rate_distortion(coder.coder_, x[:100], [1, 5], fit=x)
    assert torch.equal(coder.coder_.code(x), before)


def test_a_frontier_needs_no_simulation_and_is_that_of_calibrated_copies(fitted, monkeypatch):
    coder, x = fitted[0].coder_, fitted[1][:200]
    calibrated = copy.deepcopy(coder)
    calibrated.calibrate(x, 2.0)
    expected = explained_variance(x, calibrated.generator(calibrated.code(x)).detach())
    monkeypatch.setattr(type(coder), "_calibrate_by_simulation", lambda *given: pytest.fail("simulated"))
    assert rate_distortion(coder, x, [2.0], fit=x).explained == [expected]


def test_a_coder_of_fixed_count_is_a_single_point():
    coder = quick(method="topk").fit(small_data(300))
    x = coder.standardiser_(torch.from_numpy(small_data(300)))
    assert rate_distortion(coder.coder_, x[:80], [1, 2, 4], fit=x).active == [3.0]


def test_supports_agree_without_noise_and_less_and_less_with_it(fitted):
    coder, x = fitted
    found = support_consistency(coder.coder_, x[:200], [0.0, 0.1, 1.0, 10.0])
    assert found.jaccard[0] == 1
    assert found.jaccard == sorted(found.jaccard, reverse=True)
    assert found.jaccard[-1] < 0.5
    assert support_consistency(coder.coder_, x[:200], [0.1]).jaccard == [found.jaccard[1]]  # the same noise again


def test_simulated_calibration(fitted):
    coder, x = fitted
    found = simulated_calibration(coder.coder_, x)
    assert found.n_samples == 2048  # the size of a simulation, whatever the size of x
    assert int(found.reliability.total.sum()) == 2048 * 24
    assert 0 <= found.error < 0.2
    assert 0.75 < found.coverage <= 1  # 0.9 is what the intervals were widened to, on other simulated inputs


@pytest.mark.parametrize("method", ["topk", "fista", "gaussian", "thresholded-laplacian"])
def test_methods_that_say_nothing_about_z_are_not_calibrated(method):
    coder = quick(method=method, max_steps=3).fit(small_data())
    x = coder.standardiser_(torch.from_numpy(small_data()))
    assert simulated_calibration(coder.coder_, x) is None
