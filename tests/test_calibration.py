"""What simulation makes of probabilities and intervals."""

import pytest
import small
import torch
from scipy.stats import norm
from torch import Tensor
from torch.distributions import Normal

from softspike import SparseCoder
from softspike.calibration import Calibration
from softspike.metric.calibration import calibration_error, interval_coverage
from softspike.simulation import simulate
from softspike.threshold import Hard, PositiveHard

N, D = 4000, 20


def case(law: type, seed: int) -> tuple[Hard | PositiveHard, Tensor, Tensor]:
    """A posterior that is too sure of itself, energies, and a truth that is on with a probability of its own."""
    random = torch.Generator().manual_seed(seed)
    location = 3 * torch.randn(N, D, generator=random)
    energy = torch.exp(torch.randn(N, generator=random))
    size = location if law is PositiveHard else location.abs()
    chance = torch.sigmoid(size - 2)
    value = location + torch.randn(N, D, generator=random)
    truth = value * (torch.rand(N, D, generator=random) < chance)
    return law(Normal(location, 0.1 * torch.ones_like(location)), 1.0), energy, truth


@pytest.mark.parametrize("law", [Hard, PositiveHard])
def test_probabilities_and_intervals_are_put_right(law: type) -> None:
    """Fitted on one draw and tried on another: ECE under 0.01 where it was over 0.03, intervals within 2 %."""
    calibration = Calibration()
    q, energy, truth = case(law, 0)
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    q, energy, truth = case(law, 1)
    calibrated = calibration(q, energy)
    assert calibration_error(q.activation_probability, truth != 0) > 0.03
    assert calibration_error(calibrated.activation_probability, truth != 0) < 0.01
    active, std = q.code() != 0, calibration.widening * calibrated.variance.sqrt()
    assert interval_coverage(q.code()[active], std[active], truth[active]) == pytest.approx(0.9, abs=0.02)


def test_doubt_grows_with_what_is_left() -> None:
    """The same location is said to be active more surely in an input that is explained well, and to lie closer."""
    calibration = Calibration()
    q, energy, truth = case(PositiveHard, 0)
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    two = PositiveHard(Normal(torch.full((2, 1), 1.2), torch.full((2, 1), 0.1)), 1.0)
    calibrated = calibration(two, energy.median() * torch.tensor([0.1, 10.0]))
    sure, unsure = calibrated.activation_probability.flatten()
    assert sure > unsure
    assert calibrated.law.base.scale[1] > 2 * calibrated.law.base.scale[0]


def test_probability_grows_with_the_margin() -> None:
    calibration = Calibration()
    q, energy, truth = case(PositiveHard, 0)
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    line = PositiveHard(Normal(torch.linspace(-50, 50, 1000)[None], torch.tensor(0.1)), 1.0)
    chance = calibration(line, energy.median()[None]).activation_probability[0]
    assert (chance.diff() >= 0).all()
    assert chance[0] >= 0
    assert chance[-1] <= 1


@pytest.mark.parametrize("which", ["code", "truth"])
def test_nothing_active_teaches_nothing(which: str) -> None:
    q, energy, truth = case(PositiveHard, 0)
    calibration, code = Calibration(), q.code()
    calibration.fit(energy.median(), q, energy, code * (which == "truth"), truth * (which == "code"))
    assert not calibration.fitted


def test_fewer_events_than_knots() -> None:
    """Five active entries in all: probabilities stay finite, increasing, and of the right mean within 60 %."""
    q, energy, truth = case(PositiveHard, 0)
    truth.view(-1)[truth.flatten().nonzero().flatten()[5:]] = 0
    calibration = Calibration()
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    assert (calibration.chances.diff() >= 0).all()
    assert float(calibration(q, energy).activation_probability.mean()) == pytest.approx(5 / truth.numel(), rel=0.6)


def test_simulated_codes_are_as_active_as_real_ones() -> None:
    """Rates of z within five standard errors of γ's mean, values from the slab, the same draw every time."""
    coder = SparseCoder(**{**small.QUICK, "max_steps": 200}).fit(small.small_data(512))
    model, x = coder.coder_, coder.standardiser_(torch.from_numpy(small.small_data(512)))
    with torch.no_grad():
        law, code = model.trained_law(x), model.code(x)
        energy = (x - model.generator(code)).square().sum(-1)
        one, two = (simulate(model, law, code, energy) for _ in range(2))
        torch.testing.assert_close(one.code, model.code(one.x))
    assert torch.equal(one.x, two.x)
    rates, n = law.activation_probability.mean(0), len(one.truth)
    assert (((one.truth != 0).double().mean(0) - rates).abs() <= 5 * (rates * (1 - rates) / n).sqrt() + 1e-6).all()
    values = one.truth[one.truth != 0] / model.prior.scale.detach()
    assert float(values.abs().quantile(0.5)) == pytest.approx(norm.ppf(0.75), rel=0.05)
