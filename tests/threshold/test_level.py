"""Levels: the analytic table, the Gamma level's activity, divergence and clamps."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch.distributions import Cauchy, Gamma, Laplace, Normal, kl_divergence

from softspike.prior import LaplacePrior, NormalPrior
from softspike.threshold import (
    CentredSoft,
    FixedLevel,
    GammaLevel,
    Hard,
    PositiveHard,
    ShiftedSoft,
    activity_under_gamma,
    level_for_activity,
)

# Known values: activity, Laplace(0, 0.1), Normal(0, variance 0.1).
TABLE = [(0.05, 0.2996, 0.6198), (0.10, 0.2303, 0.5201), (0.20, 0.1609, 0.4053), (0.50, 0.0693, 0.2133)]


@pytest.mark.parametrize(("activity", "laplace", "normal"), TABLE)
def test_level_for_activity_is_the_table_of_the_paper(activity: float, laplace: float, normal: float) -> None:
    assert level_for_activity(LaplacePrior(0.1).law, activity) == pytest.approx(laplace, abs=1e-4)
    assert level_for_activity(NormalPrior(variance=0.1).law, activity) == pytest.approx(normal, abs=1e-4)


@pytest.mark.parametrize("prior", [LaplacePrior(0.3), NormalPrior(0.7)], ids=["laplace", "normal"])
@pytest.mark.parametrize("law", [ShiftedSoft, CentredSoft, Hard])
@pytest.mark.parametrize("activity", [1e-3, 0.1, 0.9, 1.0])
def test_thresholded_prior_has_the_activity_asked_for(prior: torch.nn.Module, law: type, activity: float) -> None:
    level = level_for_activity(prior.law, activity)
    assert float(law(prior.law, level).activation_probability) == pytest.approx(activity, rel=1e-4)


def test_bad_activity_prior_or_level_is_refused() -> None:
    for activity in (0.0, -0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="activity"):
            level_for_activity(Laplace(0.0, 0.1), activity)
    with pytest.raises(TypeError, match="Cauchy"):
        level_for_activity(Cauchy(0.0, 1.0), 0.1)
    for value in (-0.1, float("nan")):
        with pytest.raises(ValueError, match="level"):
            FixedLevel(value)
    with pytest.raises(ValueError, match="mean"):
        GammaLevel(3, 4, mean=0.0)


# Location and scale of the base, shape and rate of the Gamma.
GAMMA_CASES = [
    (0.0, 0.1, 3.0, 12.0),
    (0.3, 0.1, 3.0, 12.0),
    (-0.3, 0.1, 0.3, 1.2),
    (0.0, 0.3, 0.05, 1.0),
    (5.0, 0.1, 3.0, 12.0),
    (0.3, 1.0, 100.0, 400.0),
    (0.2, 0.01, 1000.0, 5000.0),
    (0.5, 10.0, 1e5, 1e5),
    (1.0, 1.0, 1.0, 100.0),
]


@pytest.mark.parametrize("base", [Normal, Laplace])
@pytest.mark.parametrize("law", [ShiftedSoft, CentredSoft, Hard, PositiveHard])
@pytest.mark.parametrize(("loc", "scale", "shape", "rate"), GAMMA_CASES)
def test_activity_under_gamma(law: type, base: type, loc: float, scale: float, shape: float, rate: float) -> None:
    """γ against its average over 20,000 quantiles of λ (5e-4) and against draws of (s, λ) (binomial, p > 1e-4)."""
    loc, scale, shape, rate = (torch.tensor(value, dtype=torch.float64) for value in (loc, scale, shape, rate))
    level = Gamma(shape, rate)
    gamma = float(activity_under_gamma(law(base(loc, scale), 0.1), level))

    centre = 0.0 if law is ShiftedSoft else float(loc)
    compared = {Normal: stats.norm, Laplace: stats.laplace}[base](centre, float(scale))
    quantiles = stats.gamma.ppf((np.arange(20_000) + 0.5) / 20_000, float(shape), scale=1 / float(rate))
    below = 0 if law is PositiveHard else compared.cdf(-quantiles)
    assert gamma == pytest.approx((compared.sf(quantiles) + below).mean(), abs=5e-4)

    n = 20_000
    z = law(base(loc.expand(n), scale), level.sample((n,))).sample()
    assert stats.binomtest(int((z != 0).sum()), n, min(gamma, 1.0)).pvalue > 1e-4


def test_activity_of_the_shifted_laplace_is_the_closed_form() -> None:
    scale, shape, rate = torch.tensor([0.1, 0.5]), torch.tensor([3.0, 0.2]), torch.tensor([12.0, 7.0])
    gamma = activity_under_gamma(ShiftedSoft(Laplace(torch.zeros(2), scale), 0.1), Gamma(shape, rate))
    torch.testing.assert_close(gamma, (1 + 1 / (scale * rate)) ** -shape)


@pytest.mark.parametrize(
    ("prior", "level", "fixed", "learned"),
    [(NormalPrior(0.1), 0.52, 0.10, 0.21), (LaplacePrior(0.1), 0.25, 0.082, 0.16)],
    ids=["gaussian", "laplacian"],
)
def test_gamma_prior_alone_raises_activity(prior: torch.nn.Module, level: float, fixed: float, learned: float) -> None:
    """Jensen: a Gamma prior alone raises activity, 10 → 21 % and 8.2 → 16 % at the paper's levels."""
    law = ShiftedSoft(prior.law, level)
    prior_level = GammaLevel(3, 1, mean=level).prior
    assert float(prior_level.mean) == pytest.approx(level)
    assert float(law.activation_probability) == pytest.approx(fixed, abs=5e-4)
    assert float(activity_under_gamma(law, prior_level)) == pytest.approx(learned, abs=5e-3)


@pytest.mark.parametrize(("shape", "rate"), [(3.0, 12.0), (0.5, 1.0), (30.0, 60.0), (3.0, 6.0)])
def test_divergence_of_the_level_equals_monte_carlo(shape: float, rate: float) -> None:
    """Summed over features; within four standard errors."""
    head = GammaLevel(2, 3, mean=0.25).double()
    q = Gamma(torch.full((1, 3), shape, dtype=torch.float64), torch.full((1, 3), rate, dtype=torch.float64))
    draws = q.sample((100_000,))
    ratio = (q.log_prob(draws) - head.prior.log_prob(draws)).sum(-1)
    assert float(head.kl(q)) == pytest.approx(float(ratio.mean()), abs=4 * float(ratio.std()) / 100_000**0.5)
    assert head.kl(q).shape == (1,)
    assert float(head.kl(head.prior.expand((1, 3)))) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("output", [-500.0, -50.0, 0.0, 50.0, 500.0])
def test_clamped_heads_stay_finite(output: float) -> None:
    """Values within [1e-6, 1e6], divergence and all gradients finite, for α and β at any head output."""
    for other in (output, -output):
        head = GammaLevel(2, 3, mean=0.25)
        with torch.no_grad():
            head.log_concentration.bias.fill_(output)
            head.log_rate.bias.fill_(other)
        level = head(torch.zeros(1, 2))
        for value in (level.concentration, level.rate):
            assert (value >= 0.999e-6).all()
            assert (value <= 1.001e6).all()
        kl = head.kl(level)
        assert kl.isfinite().all()
        kl.sum().backward()
        assert all(p.grad.isfinite().all() for p in head.parameters())
        assert kl_divergence(level, head.prior.expand(level.batch_shape)).isfinite().all()


def test_unclamped_heads_are_exponentials_of_the_heads() -> None:
    head = GammaLevel(4, 3, mean=0.25)
    h = torch.randn(5, 4)
    level = head(h)
    torch.testing.assert_close(level.concentration, head.log_concentration(h).exp())
    torch.testing.assert_close(level.rate, head.log_rate(h).exp())
    torch.testing.assert_close(head.typical(h), level.mean)
