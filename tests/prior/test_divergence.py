"""Priors, and every divergence between untruncated laws against Monte Carlo."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Distribution, Gamma, HalfNormal, Laplace, Normal, kl_divergence

from softspike.posterior import SpikeSlab
from softspike.prior import LaplacePrior, LearnedSpikeSlabPrior, NormalPrior, SpikeSlabPrior
from softspike.prior.divergence import bernoulli_kl


def wide(*values: float) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(value, dtype=torch.float64) for value in values)


def spike_slab(slab: Distribution, logit: float) -> SpikeSlab:
    return SpikeSlab(slab, *wide(logit))


PAIRS = {
    "normal ‖ normal": (Normal(*wide(0.3, 0.2)), Normal(*wide(0.0, 0.316))),
    "laplace ‖ laplace": (Laplace(*wide(0.3, 0.2)), Laplace(*wide(0.0, 0.1))),
    "laplace ‖ laplace, narrow": (Laplace(*wide(-0.5, 0.01)), Laplace(*wide(0.1, 0.1))),
    "normal ‖ laplace": (Normal(*wide(0.3, 0.2)), Laplace(*wide(0.1, 0.1))),
    "laplace ‖ normal": (Laplace(*wide(-0.3, 0.2)), Normal(*wide(0.1, 0.3))),
    "gamma ‖ gamma": (Gamma(*wide(2.0, 5.0)), Gamma(*wide(3.0, 12.0))),
    "gamma ‖ gamma, small shape": (Gamma(*wide(0.4, 1.0)), Gamma(*wide(3.0, 12.0))),
    "spike-slab ‖ spike-slab": (spike_slab(Normal(*wide(0.3, 0.2)), 0.5), spike_slab(Normal(*wide(0.0, 0.316)), -2.2)),
    "spike-slab ‖ spike-slab, rare": (
        spike_slab(Normal(*wide(2.0, 0.2)), -4.0),
        spike_slab(Normal(*wide(0.0, 0.316)), -2.2),
    ),
    "half-normal spike-slab ‖ the same": (
        spike_slab(HalfNormal(*wide(0.2)), 0.5),
        spike_slab(HalfNormal(*wide(0.5)), -2.2),
    ),
    "laplace spike-slab ‖ the same": (
        spike_slab(Laplace(*wide(0.3, 0.2)), 0.5),
        spike_slab(Laplace(*wide(0.0, 0.1)), -2.2),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_divergence_equals_monte_carlo(name: str) -> None:
    """Within four standard errors of the mean of log q − log p; positive; zero from itself."""
    q, p = PAIRS[name]
    z = q.sample((100_000,))
    ratio = q.log_prob(z) - p.log_prob(z)
    kl = float(kl_divergence(q, p))
    assert kl == pytest.approx(float(ratio.mean()), abs=4 * float(ratio.std()) / len(z) ** 0.5)
    assert kl > 0
    assert float(kl_divergence(q, q)) == pytest.approx(0, abs=1e-12)
    assert float(kl_divergence(p, p)) == pytest.approx(0, abs=1e-12)


def test_the_formulas_of_the_paper() -> None:
    """The paper's formulas, errata put right."""
    mu, scale = torch.tensor([-0.4, 0.0, 1.3]), torch.tensor([0.05, 0.1, 0.7])
    v, v0 = scale.square(), 0.1
    torch.testing.assert_close(
        kl_divergence(Normal(mu, scale), NormalPrior(v0).law), 0.5 * ((mu.square() + v) / v0 - 1 - (v / v0).log())
    )
    b0 = 0.1
    torch.testing.assert_close(
        kl_divergence(Laplace(mu, scale), LaplacePrior(b0).law),
        mu.abs() / b0 + (scale / b0) * torch.exp(-mu.abs() / scale) + (b0 / scale).log() - 1,
    )


def test_bernoulli_divergence_is_finite_at_the_ends() -> None:
    logits = torch.tensor([-200.0, -20.0, 0.0, 20.0, 200.0], requires_grad=True)
    kl = bernoulli_kl(logits, torch.tensor(-2.2))
    assert kl.isfinite().all()
    assert (kl >= 0).all()
    (slope,) = torch.autograd.grad(kl.sum(), logits)
    assert slope.isfinite().all()
    off, on = torch.sigmoid(torch.tensor(2.2)), torch.sigmoid(torch.tensor(-2.2))
    torch.testing.assert_close(kl.detach()[[0, 4]], torch.stack([-off.log(), -on.log()]))


def test_priors_are_the_laws_they_say() -> None:
    assert float(NormalPrior(variance=0.1).law.variance) == pytest.approx(0.1)
    assert float(LaplacePrior(scale=0.1).law.scale) == pytest.approx(0.1)
    prior = SpikeSlabPrior(activity=0.1, variance=0.1).law
    assert float(prior.activation_probability) == pytest.approx(0.1)
    assert float(prior.slab.variance) == pytest.approx(0.1)
    assert all(float(p.law.mean) == 0 for p in (NormalPrior(), LaplacePrior(), SpikeSlabPrior()))


@pytest.mark.parametrize("positive", [False, True])
def test_learned_prior(positive: bool) -> None:
    """The activity is given, the scale is learned, and a positive slab has no mass below 0."""
    prior = LearnedSpikeSlabPrior(activity=0.2, scale=1.5, positive=positive)
    assert float(prior.law.activation_probability) == pytest.approx(0.2)
    assert float(prior.law.slab.scale.detach()) == pytest.approx(1.5)
    z = prior.law.sample((2000,))
    assert bool((z < 0).any()) is not positive
    below = prior.law.log_prob(torch.tensor(-0.5))
    assert bool(below.isinf()) is positive
    prior.law.log_prob(z).sum().backward()
    assert [name for name, p in prior.named_parameters() if p.grad.abs() > 0] == ["log_scale"]


@pytest.mark.parametrize("prior", [NormalPrior(), LaplacePrior(), SpikeSlabPrior()], ids=lambda p: type(p).__name__)
def test_priors_follow_their_module(prior: torch.nn.Module) -> None:
    """As buffers: saved with the model and moved with it."""
    assert not list(prior.parameters())
    assert prior.state_dict()
    assert prior.double().law.mean.dtype == torch.float64
