"""The sizes of simulated coefficients: a law in 32 parts, and how it is found from codes that lack what is small."""

import pytest
import torch
from torch.distributions import HalfNormal, Normal

from softspike.calibration import Sizes


def drawn(n, seed=0, scale=2.0):
    return scale * torch.randn(n, generator=torch.Generator().manual_seed(seed))


def never_small(normal, scale=2.0):
    """The same numbers, uniform in ±scale·[½, 3/2]."""
    return scale * normal.sign() * (0.5 + torch.erf(normal.abs() / (scale * 2**0.5)))


def coded(z, seed=1):
    """As a coder sees it: in noise, and not at all below 1."""
    seen = z + 0.2 * torch.randn(z.shape, generator=torch.Generator().manual_seed(seed))
    return seen * (seen.abs() > 1)


@pytest.mark.parametrize("slab", [Normal(0.0, torch.tensor(2.0)), HalfNormal(torch.tensor(2.0))])
def test_of_the_slab_changes_nothing(slab):
    z, sizes = drawn(1000), Sizes.of(slab)
    assert sizes.scale == pytest.approx(2.0)
    assert torch.equal(sizes(z), z)


def test_draws_follow_the_weights():
    """Shares of parts within five standard errors; signs and order stay; inside of a part it is the slab's."""
    sizes = Sizes.of(Normal(0.0, torch.tensor(2.0)))
    weights = torch.linspace(0, 2, 32, dtype=torch.float64)
    law, z = Sizes(sizes.scale, weights), drawn(100_000)
    made = law(z)
    share = torch.bincount((torch.erf(made.abs().double() / (2 * 2**0.5)) * 32).long(), minlength=32) / len(z)
    expected = weights / weights.sum()
    assert ((share - expected).abs() <= 5 * (expected / len(z)).sqrt() + 1e-6).all()
    assert torch.equal(made.sign(), z.sign())
    assert (made.abs()[z.abs().argsort()].diff() >= 0).all()
    nearly = Sizes(sizes.scale, torch.ones(32, dtype=torch.float64) + 1e-12 * weights)
    torch.testing.assert_close(nearly(z[z.abs() < 8]), z[z.abs() < 8], rtol=1e-4, atol=1e-5)


def test_sizes_are_found_through_noise_and_threshold():
    """Eight steps from the slab to values that are never small: codes get alike, and what lies below the least of them
    falls from .38 of all values to less than a half of that, though hardly any of it is ever seen."""
    truth = never_small(drawn(20_000))
    real, law, slab = coded(truth, seed=5), Sizes.of(Normal(0.0, torch.tensor(2.0))), drawn(20_000, seed=3)
    assert not law.fit(real, coded(slab))
    for _ in range(8):
        z = law(slab)
        law = law.closer(real, coded(z), z)
    found = law(slab)
    assert law.fit(real, coded(found))
    assert float((slab.abs() < 1).float().mean()) > 0.35
    assert float((found.abs() < 1).float().mean()) < 0.19
    assert float(slab.abs().mean()) < 1.65 < 1.75 < float(found.abs().mean()) < float(truth.abs().mean())


@pytest.mark.parametrize("n", [100, 1000, 100_000])
def test_chance_does_not_make_codes_unlike(n):
    """Twenty pairs each of codes with one law; and normal values beside uniform ones, where there are enough."""
    law = Sizes.of(Normal(0.0, torch.tensor(2.0)))
    for seed in range(20):
        assert law.fit(coded(drawn(n, seed), seed), coded(drawn(2000, seed + 100), seed + 100))
    assert n < 100_000 or not law.fit(coded(never_small(drawn(n))), coded(drawn(n, 7)))


def test_nothing_active_is_like_nothing_else():
    law, none, some = Sizes.of(Normal(0.0, torch.tensor(2.0))), torch.zeros(5), torch.ones(5)
    assert law.fit(none, none)
    assert law.fit(none, some)
    assert torch.isfinite(law.closer(none, some, some).weights).all()
