"""What simulation makes of probabilities and intervals."""

import pytest
import torch
from scipy.stats import norm
from torch import Tensor
from torch.distributions import Normal

from softspike.calibration import Calibration
from softspike.generator import UnitNormDictionary
from softspike.metric.calibration import calibration_error, interval_coverage
from softspike.prior import LearnedSpikeSlabPrior
from softspike.simulation import simulate, simulations
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


@pytest.mark.parametrize("positive", [False, True])
def test_simulated_data_is_what_it_says(positive: bool) -> None:
    """Rates within five standard errors, values from the slab, noise of its variance, the same draw every time."""
    generator, rates = UnitNormDictionary(30, 40), torch.linspace(0.01, 0.3, 40)
    prior, variance = LearnedSpikeSlabPrior(0.1, scale=2.0, positive=positive).law, torch.tensor(0.09)
    with torch.no_grad():
        one, two = (simulate(generator, prior, rates, variance, unknown=0.0) for _ in range(2))
        residual = one.x - generator(one.truth)
    assert torch.equal(one.x, two.x)
    n = len(one.truth)
    assert (((one.truth != 0).double().mean(0) - rates).abs() <= 5 * (rates * (1 - rates) / n).sqrt()).all()
    assert (one.truth >= 0).all() == positive
    assert float(one.truth[one.truth != 0].abs().median()) == pytest.approx(2 * norm.ppf(0.75), rel=0.03)
    assert float(residual.square().mean()) == pytest.approx(0.09, rel=5 * (2 / residual.numel()) ** 0.5)


def test_unknown_atoms_add_what_no_code_explains() -> None:
    """With a share u of unknown activity E‖x − Az‖² = u·Σπᵢ·E s², within five standard errors; u halves each time."""
    generator, rates = UnitNormDictionary(30, 40), torch.full((40,), 0.1)
    prior, none = LearnedSpikeSlabPrior(0.1, scale=2.0).law, torch.zeros(())
    with torch.no_grad():
        energies = [(x - generator(truth)).square().sum(-1) for x, truth in simulations(generator, prior, rates, none)]
    assert len(energies) == 3
    for k, energy in enumerate(energies):
        expected, error = 0.05 / 2**k * 4.0 * 4.0, float(energy.std()) / len(energy) ** 0.5
        assert float(energy.mean()) == pytest.approx(expected, abs=5 * error)
