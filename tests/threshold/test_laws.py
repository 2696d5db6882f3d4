"""Every law of the table: its samples, density, mass at zero, moments and gradients agree with one another."""

import numpy as np
import pytest
import torch
from laws import CASES, ROWS, SETTINGS, build, panel_masses, quadrature
from scipy import stats
from torch.distributions import Cauchy, Distribution, Laplace, Normal

from softspike.posterior import SpikeSlab
from softspike.threshold import CentredSoft, Hard, PositiveHard, ShiftedSoft

every_case = pytest.mark.parametrize(("row", "setting"), CASES.values(), ids=CASES)
every_row = pytest.mark.parametrize("row", ROWS)

N = 20_000
FALSE_ALARM = 1e-4  # per case: a correct law fails one of some 90 with probability 1 %, once and for all, at this seed


@every_case
def test_mass_and_density_sum_to_one(row: str, setting: str) -> None:
    law, grid = build(row, setting), quadrature(SETTINGS[setting])
    silence = law.log_prob(torch.tensor(0.0, dtype=torch.float64)).exp()
    assert float(panel_masses(law, grid).sum() + silence) == pytest.approx(1, abs=1e-4)
    assert float(silence) == pytest.approx(float(1 - law.activation_probability), abs=1e-9)


@every_case
def test_share_of_zeros_is_binomial(row: str, setting: str) -> None:
    law = build(row, setting)
    zeros = int((law.sample((N,)) == 0).sum())
    assert stats.binomtest(zeros, N, float(1 - law.activation_probability)).pvalue > FALSE_ALARM


@every_case
def test_samples_follow_log_prob(row: str, setting: str) -> None:
    """Chi-square over 0 and up to 40 bins of equal mass, masses integrated from log_prob; p > FALSE_ALARM."""
    law, grid = build(row, setting), quadrature(SETTINGS[setting])
    z = law.sample((N,)).numpy()
    masses = panel_masses(law, grid).numpy()
    silence = float(law.log_prob(torch.tensor(0.0, dtype=torch.float64)).exp())
    cumulative = np.cumsum(masses)
    ends = np.unique(np.searchsorted(cumulative, np.linspace(0, cumulative[-1], 41)[1:-1]))
    edges = np.concatenate([[-np.inf], grid.edges.numpy()[ends + 1], [np.inf]])
    expected = np.append(np.diff(np.concatenate([[0], cumulative[ends], [cumulative[-1]]])), silence) * N
    observed = np.append(np.histogram(z[z != 0], edges)[0], (z == 0).sum())
    assert chi_square(observed, expected) > FALSE_ALARM


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value, with all bins of fewer than 10 expected draws pooled into one."""
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 1e-9:  # an empty pool that must stay empty
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    assert len(expected) > 1, "a single bin tests nothing"
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def test_chi_square_notices_a_wrong_scale() -> None:
    """The instrument itself: a law whose scale is 5 % off is rejected."""
    grid = quadrature(SETTINGS["wide"])
    law = build("centred-normal", "wide")
    z = CentredSoft(Normal(law.base.loc, 1.05 * law.base.scale), law.level).sample((N,)).numpy()
    masses = panel_masses(law, grid).numpy()
    coarse = np.add.reduceat(masses, np.arange(0, len(masses), 10))
    edges = np.append(grid.edges.numpy()[:-1][::10], np.inf)
    observed = np.append(np.histogram(z[z != 0], edges)[0], (z == 0).sum())
    expected = np.append(coarse, float(1 - law.activation_probability)) * N
    assert chi_square(observed, expected) < FALSE_ALARM


@every_case
def test_moments_equal_monte_carlo(row: str, setting: str) -> None:
    """Within five standard errors."""
    law = build(row, setting)
    z = law.sample((2 * N,))
    assert_mean(z, law.mean)
    assert_mean((z - law.mean).square(), law.variance)


@every_case
def test_moments_equal_integrals(row: str, setting: str) -> None:
    law, grid = build(row, setting), quadrature(SETTINGS[setting])
    density = law.log_prob(grid.nodes).exp() * grid.weights
    first, second = (density * grid.nodes).sum(), (density * grid.nodes.square()).sum()
    torch.testing.assert_close(law.mean, first, rtol=1e-5, atol=1e-9)
    torch.testing.assert_close(law.variance, second - first.square(), rtol=1e-5, atol=1e-9)


PATHWISE = [(row, setting, name) for row, setting in CASES.values() for name in ROWS[row].pathwise]


@pytest.mark.parametrize(("row", "setting", "name"), PATHWISE, ids=[", ".join(case) for case in PATHWISE])
def test_pathwise_derivatives_are_those_of_the_moments(row: str, setting: str, name: str) -> None:
    """E[dz/dθ] = dE[z]/dθ and E[dz²/dθ] = dE[z²]/dθ, within five standard errors."""
    values = dict(zip(("loc", "scale", "level"), SETTINGS[setting].tensors(), strict=True))
    values[name] = values[name].expand(N).clone().requires_grad_()
    law = ROWS[row].build(*values.values())
    z = law.rsample()
    for draw, moment in ((z, law.mean), (z.square(), law.variance + law.mean.square())):
        (each,) = torch.autograd.grad(draw.sum(), values[name], retain_graph=True)
        (exact,) = torch.autograd.grad(moment.sum(), values[name], retain_graph=True)
        assert_mean(each, exact[0])


def assert_mean(draws: torch.Tensor, mean: torch.Tensor, sigmas: float = 5) -> None:
    """Within some standard errors, and ten draws of the largest size more: events that rare may not have been seen."""
    error = sigmas * draws.std() / len(draws) ** 0.5 + 10 * draws.abs().max() / len(draws)
    assert abs(float(draws.mean() - mean)) <= float(error) + 1e-9


@every_row
def test_shapes_and_dtype(row: str) -> None:
    loc, scale, level = torch.randn(4), torch.rand(3, 1) + 0.1, torch.tensor(0.2)
    law = ROWS[row].build(loc, scale, level)
    assert law.batch_shape == (3, 4)
    assert law.event_shape == ()
    z = law.rsample((5, 2))
    assert z.shape == (5, 2, 3, 4)
    assert z.dtype == torch.float32
    assert law.rsample().shape == (3, 4)
    for quantity in (law.log_prob(z)[0, 0], law.mean, law.variance, law.activation_probability, law.code(), law.score):
        assert quantity.shape == (3, 4)
        assert quantity.dtype == torch.float32


@every_row
def test_expanded_law_is_the_same_law(row: str) -> None:
    law = build(row, "μ<λ")
    wide = law.expand((2, 3))
    z = law.sample((10, 2, 3))
    assert wide.batch_shape == (2, 3)
    assert wide.sample((7,)).shape == (7, 2, 3)
    torch.testing.assert_close(wide.log_prob(z), law.log_prob(z))
    torch.testing.assert_close(wide.mean, law.mean.expand(2, 3))
    torch.testing.assert_close(wide.variance, law.variance.expand(2, 3))
    assert len(set(wide.sample((1000,)).mean(0).flatten().tolist())) == 6, "elements share their noise"


@every_row
def test_nan_sample_is_refused(row: str) -> None:
    with pytest.raises(ValueError, match="support"):
        build(row, "μ<λ").log_prob(torch.tensor(float("nan"), dtype=torch.float64))


@pytest.mark.parametrize("law", [ShiftedSoft, CentredSoft, Hard, PositiveHard])
def test_bad_level_or_base_is_refused(law: type) -> None:
    with pytest.raises(ValueError, match="level"):
        law(Normal(0.0, 1.0), -0.1)
    with pytest.raises(ValueError, match="level"):
        law(Normal(0.0, 1.0), torch.tensor([0.1, float("nan")]))
    with pytest.raises(TypeError, match="Cauchy"):
        _ = law(Cauchy(0.0, 1.0), 0.1).activation_probability


def test_bad_logits_are_refused() -> None:
    with pytest.raises(ValueError, match="logits"):
        SpikeSlab(Normal(0.0, 1.0), torch.tensor(float("nan")))


@every_row
@pytest.mark.parametrize("loc", [0.0, 0.3, 30.0])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1e3])
@pytest.mark.parametrize("level", [0.0, 0.25])
def test_log_prob_and_gradients_are_finite_in_float32(row: str, loc: float, scale: float, level: float) -> None:
    """Where γ rounds to 0 or 1, log P(0) and every derivative stay finite, at z = 0 and elsewhere."""
    parameters = [torch.tensor(value, requires_grad=True) for value in (loc, scale, level)]
    law = ROWS[row].build(*parameters)
    z = torch.cat([torch.zeros(1), law.sample((50,))])
    total = law.log_prob(z).sum()
    assert total.isfinite()
    assert all(g.isfinite() for g in torch.autograd.grad(total, parameters, allow_unused=True) if g is not None)


@pytest.mark.parametrize("base", [Normal, Laplace])
@pytest.mark.parametrize(
    ("loc", "scale", "level"), [(1.0, 0.1, 0.25), (0.5, 0.05, 0.01), (0.0, 0.1, 3.0), (0.02, 1.0, 1e-3)]
)
def test_log_silence_in_float32(base: type, loc: float, scale: float, level: float) -> None:
    """log P(0) in float32 equals scipy's in float64 to 1e-3 relative, even where γ rounds to 1."""
    exact = {Normal: stats.norm, Laplace: stats.laplace}[base](-abs(loc), scale)
    law = CentredSoft(base(torch.tensor(loc), torch.tensor(scale)), torch.tensor(level))
    assert float(law.log_silence) == pytest.approx(np.log(exact.sf(-level) - exact.sf(level)), rel=1e-3, abs=1e-6)
    outside = np.logaddexp(exact.logsf(level), exact.logcdf(-level))
    assert float(law.log_activation) == pytest.approx(outside, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.25, 2.0])
@pytest.mark.parametrize("loc", [0.0, -0.4, 3.0])
@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_proposition_3_1(loc: float, scale: float, level: float) -> None:
    """A shifted-thresholded Laplace is a spike-and-slab with the same Laplace as slab and γ = exp(−λ/b)."""
    loc, scale, level = (torch.tensor(value, dtype=torch.float64) for value in (loc, scale, level))
    shifted = ShiftedSoft(Laplace(loc, scale), level)
    gamma = torch.exp(-level / scale)
    twin = SpikeSlab(Laplace(loc, scale), torch.logit(gamma, eps=1e-12))
    torch.testing.assert_close(shifted.activation_probability, gamma)
    z = torch.cat([torch.zeros(1), torch.linspace(-5, 5, 1000), loc[None], shifted.sample((100,))]).double()
    z = z if level > 0 else z[z != 0]  # at λ = 0 there is no mass at zero to compare
    torch.testing.assert_close(shifted.log_prob(z), twin.log_prob(z), rtol=1e-5, atol=1e-5)
    a, b = shifted.sample((N,)).numpy(), twin.sample((N,)).numpy()
    assert stats.ks_2samp(a, b).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "law", [ShiftedSoft(Normal(0.3, 0.1), 0.2), Hard(Laplace(0.3, 0.1), 0.2)], ids=["shifted", "hard"]
)
def test_other_laws_are_no_spike_and_slab(law: Distribution) -> None:
    """The comparison of Proposition 3.1 tells laws apart."""
    twin = SpikeSlab(law.base, torch.logit(law.activation_probability))
    z = torch.linspace(-0.5, 1.0, 100)
    assert (law.log_prob(z) - twin.log_prob(z)).abs().max() > 0.1


def test_deterministic_codes() -> None:
    loc = torch.tensor([-1.0, -0.2, 0.0, 0.3, 2.0])
    centred, hard = (law(Normal(loc, 0.1), 0.25) for law in (CentredSoft, Hard))
    torch.testing.assert_close(centred.code(), torch.tensor([-0.75, 0.0, 0.0, 0.05, 1.75]))
    torch.testing.assert_close(hard.code(), torch.tensor([-1.0, 0.0, 0.0, 0.3, 2.0]))
    positive = PositiveHard(Normal(loc, 0.1), 0.25)
    torch.testing.assert_close(positive.code(), torch.tensor([0.0, 0.0, 0.0, 0.3, 2.0]))
    scale = torch.tensor([0.1, 1.0])
    shifted = ShiftedSoft(Laplace(torch.tensor([0.5, 0.7]), scale), 0.25)  # γ = .08 and .78
    torch.testing.assert_close(shifted.code(), torch.tensor([0.0, 0.7]))
    for law, cut in ((centred, 2.0), (hard, 2.0), (positive, 2.0), (shifted, 0.05)):
        assert torch.equal(law.code(cut) != 0, law.score > cut)
