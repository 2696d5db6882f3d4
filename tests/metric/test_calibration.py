"""Calibration scores on cases with known answers."""

import pytest
import torch

from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability


def test_forecasts_that_come_true_as_often_as_said() -> None:
    """p uniform, outcomes drawn with p: an error of about √(15/n), and E p(1−p) = 1/6 as the Brier score."""
    p = torch.rand(200_000)
    happened = torch.rand(200_000) < p
    assert calibration_error(p, happened) < 3 * (15 / len(p)) ** 0.5
    assert brier_score(p, happened) == pytest.approx(1 / 6, abs=2e-3)


def test_overconfidence_is_the_distance() -> None:
    """Nine tenths said, half come true."""
    p = torch.full((1000,), 0.9)
    happened = torch.arange(1000) % 2 == 0
    assert calibration_error(p, happened) == pytest.approx(0.4)
    assert brier_score(p, happened) == pytest.approx((0.01 + 0.81) / 2)


def test_bins_are_of_equal_width_and_closed_at_one() -> None:
    bins = reliability(torch.tensor([0.0, 0.05, 0.1, 0.95, 1.0]), torch.tensor([0, 0, 1, 1, 1]), n_bins=10)
    assert bins.total.tolist() == [2, 1, *[0] * 7, 2]
    assert float(bins.forecast[0]) == pytest.approx(0.025)
    assert float(bins.observed[9]) == 1
    assert bins.forecast[1:9].isnan().sum() == 7


def test_empty_bins_weigh_nothing() -> None:
    p, happened = torch.tensor([0.2, 0.2, 0.9, 0.9]), torch.tensor([0, 1, 1, 1])
    assert calibration_error(p, happened, n_bins=1000) == pytest.approx((0.3 + 0.1) / 2)


def test_brier_score_of_the_base_rate() -> None:
    happened = torch.arange(100) < 10
    assert brier_score(torch.full((100,), 0.1), happened) == pytest.approx(0.09)
    assert brier_score(happened, happened) == 0


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_coverage_of_a_normal_variable(level: float) -> None:
    """Within five standard errors, at any scale; halving the std lowers it as the normal law says."""
    n, scale = 100_000, torch.rand(100_000) + 0.1
    truth = 3 + scale * torch.randn(n)
    error = 5 * (level * (1 - level) / n) ** 0.5
    assert interval_coverage(torch.full((n,), 3.0), scale, truth, level) == pytest.approx(level, abs=error)
    half = float(2 * torch.special.ndtr(0.5 * torch.special.ndtri(torch.tensor((1 + level) / 2))) - 1)
    assert interval_coverage(torch.full((n,), 3.0), scale / 2, truth, level) == pytest.approx(half, abs=0.01)


def test_a_certain_interval_covers_its_centre_only() -> None:
    truth = torch.tensor([0.0, 0.0, 1.0])
    assert interval_coverage(torch.zeros(3), torch.zeros(3), truth) == pytest.approx(2 / 3)
