"""Intervals of a law that is z + s·ε with probability p and 0 otherwise."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from softspike import SparseCoder
from softspike.calibration import Calibration
from softspike.calibration.intervals import Intervals, chance_within, half_width
from softspike.data import synthetic
from softspike.threshold import Hard

N = 500


def entries(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Chances, widths and codes of all kinds, in float64."""
    random = torch.Generator().manual_seed(seed)
    chance, size = (torch.rand(N, generator=random, dtype=torch.float64) for _ in range(2))
    width = torch.rand(N, generator=random, dtype=torch.float64) + 1e-3
    return chance, width, 3 * (size - 0.5)


@pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.9, 0.99])
def test_the_shortest_that_has_the_level(level: float) -> None:
    """By search over ten thousand lengths: none shorter has the probability, to the step of the search and what is
    spared for rounding."""
    chance, width, code = entries()
    grid = torch.linspace(0, 12, 10_001, dtype=torch.float64)[:, None]
    inside = chance * torch.erf(grid / (2**0.5 * width)) + (1 - chance) * (grid >= code.abs())
    enough = inside >= level
    known = enough.any(0)
    shortest = grid[enough.double().argmax(0), 0]
    found = half_width(chance, width, code, torch.tensor(level, dtype=torch.float64))
    assert known.sum() > 0.9 * N
    difference = (found - shortest)[known]
    assert float(difference.max()) <= 2e-3
    assert float(difference.min()) >= -2e-3


def test_what_is_held_is_what_the_level_says() -> None:
    """|error| < half-width where the chance of less than |error| is below the level, and only there."""
    chance, width, code = entries(1)
    random = torch.Generator().manual_seed(2)
    there = torch.rand(N, generator=random) < 0.7
    truth = torch.where(there, code + width * torch.randn(N, generator=random, dtype=torch.float64), 0.0)
    error = (code - truth).abs()
    for level in (0.3, 0.6, 0.85, 0.95):
        held = error <= half_width(chance, width, code, torch.tensor(level, dtype=torch.float64))
        below = chance_within(chance, width, code.abs(), error) < level
        assert float((held != below).double().mean()) < 0.005  # those within a thousandth of |z|, spared for rounding


def test_a_component_that_may_not_be_there_may_be_0() -> None:
    level = torch.tensor(0.9)
    half = half_width(torch.tensor([0.99, 0.5]), torch.tensor([0.1, 0.1]), torch.tensor([2.0, 2.0]), level)
    assert half[0] < 0.3
    assert half[1] >= 2.0


def test_nothing_active_leaves_them_unfitted() -> None:
    law = Hard(Normal(torch.zeros(5, 4), 0.1), 1.0)
    calibration = Calibration()
    calibration.typical.fill_(1.0)
    intervals = Intervals()
    intervals.fit(calibration, law, torch.ones(5), torch.zeros(5, 4), torch.zeros(5, 4), noisy=True)
    assert not intervals.fitted


def test_saved_and_loaded_is_itself() -> None:
    random = torch.Generator().manual_seed(0)
    location = 3 * torch.randn(400, 6, generator=random)
    law, energy = Hard(Normal(location, 0.3), 1.0), torch.ones(400)
    truth = (location + 0.3 * torch.randn(400, 6, generator=random)) * (location.abs() > 1.5)
    calibration, intervals, other = Calibration(), Intervals(), Intervals()
    calibration.fit(energy.median(), law, energy, law.code(), truth)
    intervals.fit(calibration, law, energy, law.code(), truth, noisy=True)
    other.load_state_dict(intervals.state_dict())
    assert torch.equal(other(law, energy, law.code()), intervals(law, energy, law.code()))


def test_refitted_without_noise_they_forget_the_level() -> None:
    random = torch.Generator().manual_seed(0)
    location = 3 * torch.randn(400, 6, generator=random)
    law, energy = Hard(Normal(location, 0.3), 1.0), torch.ones(400)
    truth = (location + 0.3 * torch.randn(400, 6, generator=random)) * (location.abs() > 1.5)
    calibration, intervals = Calibration(), Intervals()
    calibration.fit(energy.median(), law, energy, law.code(), truth)
    for noisy in (True, False):
        intervals.fit(calibration, law, energy, law.code(), truth, noisy)
        assert bool(intervals.level.isnan()) != noisy


def test_a_coder_of_noisy_data_has_a_law_of_its_own_for_them() -> None:
    """Probabilities are those of another calibration, and intervals hold 0 where that one's are below the level."""
    x = synthetic(2000, 16, 20, 2, seed=0, noise=0.1).x
    coder = SparseCoder(20, n_active=2, positive=True, max_steps=200, random_state=0, verbose=False).fit(x.numpy())
    model, standard = coder.coder_, coder.standardiser_(x)
    assert 0 < float(model.intervals.level) < 1
    assert not torch.equal(model.intervals.calibration.chances, model.calibration.chances)
    seen = model._seen(standard)
    code, std = model.code_and_std(standard)
    doubtful = model.intervals.calibration(seen.law, seen.energy).activation_probability < model.intervals.level
    held = (code != 0) & doubtful
    assert int(held.sum()) > 100
    assert bool((1.645 * std >= code.abs())[held].all())
