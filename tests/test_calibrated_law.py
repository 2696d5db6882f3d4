"""What simulation makes of probabilities and intervals."""

import math

import pytest
import torch
from scipy.stats import norm
from torch import Tensor
from torch.distributions import Normal

from softspike.calibration import Calibration, Inputs, Seen, Simulated, most_alike, simulate, true_rates
from softspike.calibration.intervals import ASIDE, Intervals
from softspike.generator import UnitNormDictionary
from softspike.metric.calibration import calibration_error, interval_coverage
from softspike.prior import LearnedSpikeSlabPrior
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
def test_probabilities_are_put_right(law: type) -> None:
    """Fitted on one draw, tried on another: ECE under 0.01 where it was over 0.03."""
    calibration = Calibration()
    q, energy, truth = case(law, 0)
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    q, energy, truth = case(law, 1)
    calibrated = calibration(q, energy)
    assert calibration_error(q.activation_probability, truth != 0) > 0.03
    assert calibration_error(calibrated.activation_probability, truth != 0) < 0.01


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("law", [Hard, PositiveHard])
def test_intervals_are_put_right(law: type, noisy: bool) -> None:
    """Fitted on one draw, tried on another: they hold 90 % of the active coefficients, within 2 %, but for the share by
    which widths without noise are made smaller, since these errors are no larger than real ones."""
    calibration, intervals = Calibration(), Intervals()
    q, energy, truth = case(law, 0)
    calibration.fit(energy.median(), q, energy, q.code(), truth)
    intervals.fit(calibration, q, energy, q.code(), truth, noisy)
    q, energy, truth = case(law, 1)
    active, std = q.code() != 0, intervals(q, energy, q.code()) / (1 if noisy else ASIDE)
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
    """Rates within five standard errors, values from the slab, noise of its variance, the same draw every time; counts
    of inputs that are as loud as they are full, so that the two stay together."""
    generator, rates = UnitNormDictionary(30, 40), torch.linspace(0.01, 0.3, 40)
    counts = (torch.rand(500, 40, generator=torch.Generator().manual_seed(1)) < rates).sum(1)
    like = Inputs(counts, 0.09 * counts / counts.double().mean().float())
    prior = LearnedSpikeSlabPrior(0.1, scale=2.0, positive=positive).law
    with torch.no_grad():
        one, two = (simulate(generator.atoms, prior, rates, like, unknown=0.0) for _ in range(2))
        residual = one.x - generator(one.truth)
    assert torch.equal(one.x, two.x)
    n, active = len(one.truth), (one.truth != 0).sum(1).double()
    assert set(active.tolist()) <= set(counts.tolist())
    assert float(active.var()) == pytest.approx(float(counts.double().var()), rel=0.2)
    assert float(torch.corrcoef(torch.stack([active, residual.square().mean(1).double()]))[0, 1]) > 0.7
    assert (((one.truth != 0).double().mean(0) - rates).abs() <= 5 * (rates * (1 - rates) / n).sqrt()).all()
    assert (one.truth >= 0).all() == positive
    assert float(one.truth[one.truth != 0].abs().median()) == pytest.approx(2 * norm.ppf(0.75), rel=0.03)
    assert float(residual.square().mean()) == pytest.approx(0.09, rel=0.05)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_rows_that_overflowed_teach_nothing(bad: float) -> None:
    """One row in ten with locations that are no numbers: exactly what the other nine alone give, without a word."""
    q, energy, truth = case(Hard, 0)
    code, rows = q.code(), torch.arange(N) % 10 != 0
    plain, spoiled = Calibration(), Calibration()
    kept = Hard(Normal(q.base.loc[rows], q.base.scale[rows]), 1.0)
    plain.fit(energy.median(), kept, energy[rows], code[rows], truth[rows])
    location = torch.where(rows[:, None], q.base.loc, bad)
    law = Hard(Normal(location, q.base.scale, validate_args=False), 1.0, validate_args=False)
    spoiled.fit(energy.median(), law, energy, torch.where(rows[:, None], code, bad), truth)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(spoiled.state_dict()[name], value, rtol=0, atol=0)
    nothing = Calibration()
    nothing.fit(energy.median(), Hard(Normal(location[~rows], 0.1, validate_args=False), 1.0, validate_args=False),
                energy[~rows], code[~rows], truth[~rows])  # fmt: skip
    assert not nothing.fitted


def test_unknown_atoms_add_what_no_code_explains() -> None:
    """With a share u of unknown activity E‖x − Az‖² = u·Σπᵢ·E s², within five standard errors; a half has a subset."""
    generator, rates = UnitNormDictionary(30, 40), torch.full((40,), 0.1)
    prior, none = LearnedSpikeSlabPrior(0.1, scale=2.0).law, Inputs(torch.tensor([4]), torch.zeros(1))
    quiet = torch.ones(2048, dtype=torch.bool)
    for share in (0.4, 0.2, 0.05):
        with torch.no_grad():
            x, truth = simulate(generator.atoms, prior, rates, none, share)
            energy = (x - generator(truth)).square().sum(-1)
        assert float(energy.mean()) == pytest.approx(share * 16, abs=5 * float(energy.std()) / len(energy) ** 0.5)
        now_quiet = energy < 1e-8
        assert (now_quiet | ~quiet).all() or share == 0.4  # rows without an unknown atom stay without one
        quiet = now_quiet


def test_unknown_atoms_lie_where_the_atoms_do() -> None:
    """Atoms in a plane: what is added to them lies there too."""
    generator, rates = UnitNormDictionary(6, 5), torch.full((5,), 0.3)
    with torch.no_grad():
        generator.atoms[2:] = 0
        some = Inputs(torch.tensor([1, 2]), torch.zeros(2))
        x = simulate(generator.atoms, LearnedSpikeSlabPrior(0.1).law, rates, some, unknown=1.0).x
    assert float(x[:, 2:].abs().max()) < 1e-6
    assert float(x[:, :2].abs().max()) > 1


@pytest.mark.parametrize("scale", [2.0, 10.0])
def test_the_share_of_unknown_atoms_is_found(scale: float) -> None:
    """Codes that miss every value below 1 and hold one wrong entry for each unknown atom, n = π·(1 + u)·P(|s| > 1).

    Real ones were made with the u for which that is π. It is found to within a quarter, and sums of probabilities are
    right to 5 %.
    """
    share = 1 / (2 * norm.sf(1 / scale)) - 1

    def world(unknown: float, wrong: float = 0, spread: float = 1, seed: int = 0) -> Simulated:
        random = torch.Generator().manual_seed(seed)
        chance, kind, value = (torch.rand(N, D, generator=random) for _ in range(3))
        value = scale * torch.special.ndtri(value.clamp(1e-6, 1 - 1e-6))
        truth = value * (chance < 0.1)
        return Simulated(torch.where(truth != 0, truth, value * (kind < 0.1 * unknown / 0.9)), truth)

    def look(x: Tensor) -> Seen:
        law = Hard(Normal(x, torch.tensor(0.1)), 1.0)
        return Seen(law, torch.ones(len(x)), law.code())

    found = most_alike(look(world(share, seed=1).x), world, look)
    assert found.share == pytest.approx(share, rel=0.25)
    assert torch.equal(found.simulated.x, world(found.share).x)
    said = found.calibration(*look(world(share, seed=1).x)[:2]).activation_probability.sum(-1).mean()
    assert float(said) == pytest.approx(0.1 * D, rel=0.05)


@pytest.mark.parametrize("energy", [[1.0, 1.0, 1.0], [1.0, 1.0, 7.0], [0.0, 0.0], [1e-4, 1e-4, 1e-4]])
def test_intervals_have_a_level_where_codes_leave_noise(energy: list[float]) -> None:
    """And none where next to nothing is left; the last simulation, by which they are set, has the share of the one
    before."""
    truth = (torch.rand(len(energy), D, generator=torch.Generator().manual_seed(0)) < 0.5).float() * 3
    seen, shares = Seen(Hard(Normal(truth, 0.1), 1.0), torch.tensor(energy).float(), truth), []

    def world(share: float, wrong: float, spread: float) -> Simulated:
        shares.append(share)
        return Simulated(truth, truth)

    found = most_alike(seen, world, lambda x: seen)
    assert shares[-1] == shares[-2]
    assert bool(found.intervals.level.isnan()) == (energy[0] < 1)


def test_no_more_unknown_atoms_are_tried_where_they_leave_less() -> None:
    """Codes of one component fewer for each fivefold share: the first share stays, and nothing beyond the second."""
    truth = torch.zeros(50, D)
    truth[:, :10] = 3.0
    real = Seen(Hard(Normal(truth, 0.1), 1.0), torch.ones(50), truth)
    shares: list[float] = []

    def world(share: float, wrong: float, spread: float) -> Simulated:
        shares.append(share)
        left = max(int(8 - 3 * math.log(share / 0.0625, 5)), 1)
        return Simulated(truth * (torch.arange(D) < left), truth)

    def look(x: Tensor) -> Seen:
        law = Hard(Normal(x, torch.tensor(0.1)), 1.0)
        return Seen(law, torch.ones(len(x)), law.code())

    found = most_alike(real, world, look)
    assert found.share == pytest.approx(2**-5.5)
    assert max(shares) == pytest.approx(2**-1.75)
    assert len(shares) == 3


def test_mistakes_that_spread_counts_are_not_simulated_twice() -> None:
    """Simulated codes of two and six components: the last simulation, that of intervals, has half the spread where real
    ones have three and five, none where all have four, and no more than all where they have none and eight."""
    asked: list[float] = []

    def codes(*counts: int) -> Tensor:
        return 3.0 * (torch.arange(D) < torch.tensor(counts).repeat(20)[:, None])

    def look(x: Tensor) -> Seen:
        law = Hard(Normal(x, torch.tensor(0.1)), 1.0)
        return Seen(law, torch.ones(len(x)), law.code())

    def world(share: float, wrong: float, spread: float) -> Simulated:
        asked.append(spread)
        return Simulated(codes(2, 6), codes(2, 6))

    for real, expected in ((codes(3, 5), 0.5), (codes(4, 4), 0.0), (codes(0, 8), 1.0)):
        most_alike(look(real), world, look)
        assert asked[-1] == pytest.approx(expected)
        assert set(asked[:-1]) <= {1.0}
        asked.clear()


def test_the_spread_of_counts_can_be_less() -> None:
    """Half of it, rounded, about the same mean; none at all."""
    like = Inputs(torch.tensor([1, 5, 9]), torch.arange(3.0))
    assert like.with_spread(0.5).counts.tolist() == [3, 5, 7]
    assert like.with_spread(0.0).counts.tolist() == [5, 5, 5]
    assert like.with_spread(1.0).counts.tolist() == [1, 5, 9]
    assert torch.equal(like.with_spread(0.5).variances, like.variances)


def test_nothing_active_has_no_likeness() -> None:
    """Inputs of zeros: no share is better than another, nothing is fitted, nothing fails."""
    silent = Seen(Hard(Normal(torch.zeros(5, D), 0.1), 1.0), torch.zeros(5), torch.zeros(5, D))
    made = Simulated(torch.zeros(5, D), torch.zeros(5, D))
    assert not most_alike(silent, lambda share, wrong, spread: made, lambda x: silent).calibration.fitted


def test_rates_of_the_truth_are_those_of_codes_less_mistakes() -> None:
    activity = torch.tensor([0.4, 0.2, 0.1, 0.1])
    count = torch.tensor(1.0, dtype=torch.float64)
    torch.testing.assert_close(true_rates(activity, 0.0, count), activity / 0.8)
    torch.testing.assert_close(true_rates(activity, 0.1, count), torch.tensor([0.3, 0.1, 0.01, 0.01]) / 0.42)
    torch.testing.assert_close(true_rates(activity, 9.0, count), activity / 0.8)  # all mistakes: as they are
