"""Noise and its place: the halves make exact draws, and derivatives of draws are those of expectations."""

import pytest
import torch
from scipy import stats
from torch.distributions import Cauchy, Distribution, Gamma, HalfNormal, Laplace, Normal

from softspike.posterior import SpikeSlab, draw, noise, place

N = 20_000


def wide(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


CONTINUOUS = {
    "normal": (Normal(wide(0.3), wide(0.2)), stats.norm(0.3, 0.2)),
    "half-normal": (HalfNormal(wide(0.2)), stats.halfnorm(0, 0.2)),
    "laplace": (Laplace(wide(-0.3), wide(0.1)), stats.laplace(-0.3, 0.1)),
    "gamma": (Gamma(wide(3.0), wide(12.0)), stats.gamma(3.0, scale=1 / 12)),
    "gamma of small shape": (Gamma(wide(0.2), wide(2.0)), stats.gamma(0.2, scale=1 / 2)),
}
BATCHED = {
    "normal": lambda: Normal(torch.randn(5, 3), torch.rand(5, 3) + 0.1),
    "half-normal": lambda: HalfNormal(torch.rand(5, 3) + 0.1),
    "laplace": lambda: Laplace(torch.randn(5, 3), torch.rand(5, 3) + 0.1),
    "gamma": lambda: Gamma(torch.rand(5, 3) + 0.5, torch.rand(5, 3) + 0.5),
    "spike-slab": lambda: SpikeSlab(Normal(torch.randn(5, 3), 0.3), torch.randn(5, 3)),
    "laplace spike-slab": lambda: SpikeSlab(Laplace(torch.randn(5, 3), 0.3), torch.randn(5, 3)),
}
FUNCTIONS = {"exp(−λ)": lambda t: torch.exp(-t), "λ²": torch.square, "sin λ": torch.sin}
every_batched = pytest.mark.parametrize("name", BATCHED)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_follow_the_law(name: str) -> None:
    """Kolmogorov–Smirnov, and the counts in either tail, against scipy's distribution function; each p > 1e-4."""
    law, exact = CONTINUOUS[name]
    draws = draw(law.expand((N,)), 1)[0].numpy()
    assert stats.kstest(draws, exact.cdf).pvalue > 1e-4
    for share in (1e-3, 1e-2):
        for count in ((draws < exact.ppf(share)).sum(), (draws > exact.isf(share)).sum()):
            assert stats.binomtest(int(count), N, share).pvalue > 1e-4


@every_batched
def test_placed_noise_is_the_draw(name: str) -> None:
    """The same generator gives the same noise and the same draws; another seed gives others."""
    law = BATCHED[name]()
    first, again, other = (torch.Generator().manual_seed(seed) for seed in (7, 7, 8))
    z = draw(law, 4, first)
    assert z.shape == (4, 5, 3)
    assert torch.equal(place(law, noise(law, 4, again)), z)
    assert not torch.equal(draw(law, 4, other), z)


@every_batched
def test_picked_noise_is_the_picked_draw(name: str) -> None:
    """What `BestOf` relies on: draws of rows of noise are those rows of the draws."""
    law = BATCHED[name]()
    all_noise = noise(law, 6, torch.Generator().manual_seed(0))
    winner, rows = torch.tensor([0, 5, 2, 2, 1]), torch.arange(5)
    torch.testing.assert_close(place(law, all_noise[winner, rows][None])[0], place(law, all_noise)[winner, rows])


def test_laplace_noise_is_bounded() -> None:
    """The published clamp: at most 13.8 scales from the location, whatever the uniform draw."""
    law = Laplace(torch.zeros(1_000_000), torch.ones(()))
    assert draw(law, 1).abs().max() <= 13.82


@pytest.mark.parametrize("shape", [0.3, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_gamma_gradient_is_that_of_the_expectation(shape: float, function: str) -> None:
    """Pathwise dE[f(λ)]/dα and /dβ against central differences of E[f] by quantiles; five standard errors."""
    rate, f = 2.0, FUNCTIONS[function]
    alpha = torch.full((N,), shape, dtype=torch.float64, requires_grad=True)
    beta = torch.full((N,), rate, dtype=torch.float64, requires_grad=True)
    value = f(draw(Gamma(alpha, beta), 1))
    grads = torch.autograd.grad(value.sum(), (alpha, beta))

    def expectation(a: float, b: float) -> float:
        u = (torch.arange(50_000, dtype=torch.float64) + 0.5) / 50_000
        return float(f(torch.from_numpy(stats.gamma.ppf(u.numpy(), a, scale=1 / b))).mean())

    step = 1e-2 * min(shape, rate)
    exact = (
        (expectation(shape + step, rate) - expectation(shape - step, rate)) / (2 * step),
        (expectation(shape, rate + step) - expectation(shape, rate - step)) / (2 * step),
    )
    for each, slope in zip(grads, exact, strict=True):
        error = 5 * float(each.std()) / N**0.5
        assert float(each.mean()) == pytest.approx(slope, abs=error + 2e-3 * abs(slope))


@pytest.mark.parametrize("shape", [0.05, 1.0, 3.0, 200.0])
def test_gamma_gradient_is_that_of_torch(shape: float) -> None:
    """One draw of torch's own rsample, its standard noise recovered, has the same value and derivatives."""
    alpha = torch.full((500,), shape, dtype=torch.float64, requires_grad=True)
    beta = (torch.rand(500, dtype=torch.float64) + 0.5).requires_grad_()
    law = Gamma(alpha, beta)
    theirs = law.rsample()
    ours = place(law, (theirs * beta).detach()[None])[0]
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(*(torch.autograd.grad(v.sum(), (alpha, beta)) for v in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_spike_is_hard_forward_and_soft_backward(temperature: float) -> None:
    """z = value·1[logit + noise > 0] with the derivative value·sigmoid'((logit + noise)/τ) to the logit."""
    loc, logits = torch.randn(2, 50, requires_grad=True), torch.randn(2, 50, requires_grad=True)
    law = SpikeSlab(Normal(loc, 0.3), logits, temperature)
    random = noise(law, 4)
    z = place(law, random)
    value, noisy = (loc + 0.3 * random[..., 0, :]).detach(), (logits + random[..., 1, :]).detach()
    torch.testing.assert_close(z, value * (noisy > 0))
    assert torch.equal(z == 0, noisy <= 0)
    to_loc, to_logits = torch.autograd.grad(z.sum(), (loc, logits))
    soft = torch.sigmoid(noisy / temperature)
    torch.testing.assert_close(to_loc, (noisy > 0).float().sum(0))
    torch.testing.assert_close(to_logits, (value * soft * (1 - soft) / temperature).sum(0))


def test_unknown_law_is_refused() -> None:
    law: Distribution = Cauchy(0.0, 1.0)
    with pytest.raises(TypeError, match=r"Cauchy.*register"):
        draw(law, 3)
    with pytest.raises(TypeError, match=r"Cauchy.*register"):
        place(law, torch.zeros(3))
