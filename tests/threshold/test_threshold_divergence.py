"""Closed-form divergences of thresholded laws."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch.distributions import Distribution, HalfNormal, Laplace, Normal, kl_divergence

from softspike.posterior import SpikeSlab
from softspike.threshold import CentredSoft, Hard, PositiveHard, ShiftedSoft, as_spike_slab

Pair = Callable[..., tuple[Distribution, Distribution]]

# Each builds q and p from q's location, scale and level and p's; one row enrols a pair in every test below.
PAIRS: dict[str, Pair] = {
    "shifted-laplace ‖ shifted-laplace": lambda m, s, t, m0, s0, t0: (
        ShiftedSoft(Laplace(m, s), t),
        ShiftedSoft(Laplace(m0, s0), t0),
    ),
    "shifted-laplace ‖ spike-slab": lambda m, s, t, m0, s0, t0: (
        ShiftedSoft(Laplace(m, s), t),
        SpikeSlab(Laplace(m0, s0), 1 - t0 / s0),
    ),
    "hard-normal ‖ spike-slab": lambda m, s, t, m0, s0, t0: (
        Hard(Normal(m, s), t),
        SpikeSlab(Normal(m0, s0), 1 - t0 / s0),
    ),
    "hard-normal ‖ hard-normal": lambda m, s, t, m0, s0, t0: (Hard(Normal(m, s), t), Hard(Normal(m0, s0), t)),
    "hard-normal ‖ lower hard-normal": lambda m, s, t, m0, s0, t0: (
        Hard(Normal(m, s), t),
        Hard(Normal(m0, s0), 0.9 * t),
    ),
    "positive-normal ‖ half-normal spike-slab": lambda m, s, t, m0, s0, t0: (
        PositiveHard(Normal(m, s), t),
        SpikeSlab(HalfNormal(s0 + 0 * m0, validate_args=False), 1 - t0 / s0),
    ),
    "centred-normal ‖ centred-normal": lambda m, s, t, m0, s0, t0: (
        CentredSoft(Normal(m, s), t),
        CentredSoft(Normal(m0, s0), t0),
    ),
}

# μ, scale, λ of q; μ₀, scale₀, λ₀ of p.
SETTINGS = [
    (0.0, 0.1, 0.25, 0.0, 0.1, 0.25),
    (0.3, 0.1, 0.25, 0.0, 0.2, 0.25),
    (-0.6, 0.3, 0.25, 0.1, 0.5, 0.4),
    (1.0, 0.15, 0.25, 0.0, 0.6, 0.3),
    (0.2, 0.5, 0.05, 0.0, 0.3, 0.1),
    (0.1, 0.05, 0.2, 0.0, 0.3, 0.15),
]
every_pair = pytest.mark.parametrize("pair", PAIRS)
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


def build(pair: str, setting: tuple[float, ...]) -> tuple[Distribution, Distribution]:
    return PAIRS[pair](*(torch.tensor(value, dtype=torch.float64) for value in setting))


@every_pair
@every_setting
def test_divergence_equals_monte_carlo(pair: str, setting: tuple[float, ...]) -> None:
    """Within four standard errors of the mean of log q − log p, and not negative."""
    q, p = build(pair, setting)
    z = q.sample((100_000,))
    ratio = q.log_prob(z) - p.log_prob(z)
    kl = kl_divergence(q, p)
    assert float(kl) == pytest.approx(float(ratio.mean()), abs=4 * float(ratio.std()) / len(z) ** 0.5 + 1e-6)
    assert kl >= -1e-12


@every_pair
@every_setting
def test_divergence_is_that_of_the_densities(pair: str, setting: tuple[float, ...]) -> None:
    """The same by quadrature, to 1e-6: mass at zero plus a fine midpoint sum on either side of every jump."""
    q, p = build(pair, setting)
    m, s, t = setting[:3]
    breaks = sorted({m - 40 * s - t, -t, 0.0, t, m, m + 40 * s + t, setting[3]})
    total = torch.zeros((), dtype=torch.float64)
    for a, b in pairwise(breaks):
        z = a + (b - a) * (torch.arange(40_000, dtype=torch.float64) + 0.5) / 40_000
        log_q = q.log_prob(z)
        inside = log_q > -700
        total += (log_q.exp() * (log_q - p.log_prob(z)))[inside].sum() * (b - a) / 40_000
    zero = torch.zeros((), dtype=torch.float64)
    total += q.log_prob(zero).exp() * (q.log_prob(zero) - p.log_prob(zero))
    torch.testing.assert_close(kl_divergence(q, p), total, rtol=1e-5, atol=1e-6)


def test_divergence_from_itself_is_zero() -> None:
    loc, scale, level = (torch.tensor(value, dtype=torch.float64) for value in (0.3, 0.1, 0.25))
    shifted = ShiftedSoft(Laplace(loc, scale), level)
    twin = as_spike_slab(shifted)
    hard, centred = Hard(Normal(loc, scale), level), CentredSoft(Normal(loc, scale), level)
    for q, p in ((shifted, shifted), (shifted, twin), (hard, hard), (centred, centred)):
        assert float(kl_divergence(q, p)) == pytest.approx(0, abs=1e-12)


@every_setting
def test_hard_and_centred_pairs_agree_at_one_level(setting: tuple[float, ...]) -> None:
    """Soft-thresholding is injective on |s| > λ, so it loses exactly what the hard threshold loses."""
    m, s, t, m0, s0, _ = (torch.tensor(value, dtype=torch.float64) for value in setting)
    q, p = Normal(m, s), Normal(m0, s0)
    hard, centred = (kl_divergence(law(q, t), law(p, t)) for law in (Hard, CentredSoft))
    torch.testing.assert_close(hard, centred, rtol=1e-10, atol=1e-12)


@every_setting
def test_thresholding_never_adds_information(setting: tuple[float, ...]) -> None:
    """Data processing: at one level, KL(T(q) ‖ T(p)) ≤ KL(q ‖ p); strictly where something is cut off."""
    m, s, t, m0, s0, _ = (torch.tensor(value, dtype=torch.float64) for value in setting)
    for law, base in ((Hard, Normal), (CentredSoft, Normal)):
        whole = kl_divergence(base(m, s), base(m0, s0))
        assert kl_divergence(law(base(m, s), t), law(base(m0, s0), t)) <= whole + 1e-12
    # The shifted map depends on μ, so the inequality holds where the two locations are one.
    q, p = Laplace(m, s), Laplace(m, s0)
    assert kl_divergence(ShiftedSoft(q, t), ShiftedSoft(p, t)) <= kl_divergence(q, p) + 1e-12


def test_thresholding_loses_information() -> None:
    q, p = Normal(0.1, 0.1), Normal(0.0, 0.3)
    whole = kl_divergence(q, p)
    assert kl_divergence(Hard(q, 0.25), Hard(p, 0.25)) < 0.9 * whole
    assert kl_divergence(Hard(q, 0.0), Hard(p, 0.0)) == pytest.approx(float(whole), rel=1e-5)


@every_pair
@pytest.mark.parametrize("loc", [0.0, 0.3, 30.0])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 30.0])
@pytest.mark.parametrize("level", [0.0, 0.25, 20.0])
def test_divergence_and_gradients_are_finite_in_float32(pair: str, loc: float, scale: float, level: float) -> None:
    """Also where γ rounds to 0 or 1."""
    own = [torch.tensor(value, requires_grad=True) for value in (loc, scale, level)]
    q, p = PAIRS[pair](*own, torch.tensor(0.0), torch.tensor(0.3), torch.tensor(0.25))
    kl = kl_divergence(q, p)
    assert kl.isfinite()
    assert kl >= -1e-4 * (1 + kl.abs())
    assert all(g.isfinite() for g in torch.autograd.grad(kl, own, allow_unused=True) if g is not None)
    exact = kl_divergence(*build(pair, (loc, scale, level, 0.0, 0.3, 0.25)))
    assert float(kl.detach()) == pytest.approx(float(exact), rel=1e-3, abs=1e-3)


def test_gradients_equal_finite_differences() -> None:
    for pair in PAIRS:
        leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in SETTINGS[2]]
        assert torch.autograd.gradcheck(lambda *values, pair=pair: kl_divergence(*PAIRS[pair](*values)), leaves)


def test_batches_broadcast() -> None:
    q = CentredSoft(Normal(torch.randn(5, 4), 0.3), 0.2)
    p = CentredSoft(Normal(0.0, 0.3), 0.2)
    assert kl_divergence(q, p).shape == (5, 4)
    torch.testing.assert_close(kl_divergence(q, p), kl_divergence(q, p.expand((5, 4))))


def test_density_outside_the_prior_is_infinitely_far() -> None:
    """A hard law may keep values that a higher threshold has cut out of the prior."""
    assert kl_divergence(Hard(Normal(0.0, 1.0), 0.1), Hard(Normal(0.0, 1.0), 0.2)) == torch.inf


def test_pairs_without_closed_form_are_refused() -> None:
    normal, laplace = Normal(0.0, 1.0), Laplace(0.0, 1.0)
    for q, p, name in [
        (ShiftedSoft(normal, 0.1), ShiftedSoft(normal, 0.1), "Normal"),
        (ShiftedSoft(laplace, 0.1), ShiftedSoft(normal, 0.1), "Normal"),
        (Hard(laplace, 0.1), Hard(laplace, 0.1), "Laplace"),
        (CentredSoft(normal, 0.1), CentredSoft(laplace, 0.1), "Laplace"),
        (Hard(normal, 0.1), SpikeSlab(laplace, torch.zeros(())), "Laplace"),
        (PositiveHard(normal, 0.1), SpikeSlab(normal, torch.zeros(())), "Normal"),
        (Hard(normal, 0.1), CentredSoft(normal, 0.1), "CentredSoft"),
    ]:
        with pytest.raises(NotImplementedError, match=name):
            kl_divergence(q, p)
