"""The bound without sampling: the one-pass moments, the expected error, the optimal noise."""

import math

import pytest
import torch
from torch.distributions import HalfNormal, Normal, kl_divergence

from softspike.encoder import LinearEncoder
from softspike.generator import Dictionary
from softspike.model import VariationalCoder
from softspike.objective import Expected, ExpectedPlain, Objective
from softspike.objective.hard import hard_gaussian_moments
from softspike.posterior import GaussianPosterior, LaplacePosterior, SpikeSlab
from softspike.prior import LaplacePrior, LearnedSpikeSlabPrior, NormalPrior, Prior, SpikeSlabPrior
from softspike.threshold import CentredSoft, FixedLevel, Hard, PositiveHard, ShiftedSoft, Threshold

# Locations and scales around a level of 0.4, from surely silent to surely active.
LOC = [-3.0, -0.5, 0.0, 0.3, 0.45, 2.0]
SCALE = [0.02, 0.1, 0.5, 2.0]


def grid(dtype: torch.dtype) -> list[torch.Tensor]:
    values = torch.cartesian_prod(torch.tensor(LOC, dtype=dtype), torch.tensor(SCALE, dtype=dtype))
    return [
        *(v.clone().requires_grad_() for v in values.T),
        torch.full((len(values),), 0.4, dtype=dtype).requires_grad_(),
    ]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 2e-4), (torch.float32, 1e-3)], ids=["64", "32"])
def test_one_pass_moments_are_those_of_the_law(positive: bool, dtype: torch.dtype, tolerance: float) -> None:
    """Values and gradients of γ, E z, Var z and KL; and the slope is dγ/dλ. The one pass floors 1 − γ at 1e-7."""
    leaves = grid(dtype)
    logit, width = torch.tensor(-1.5, dtype=dtype), torch.tensor(0.7, dtype=dtype)
    m = hard_gaussian_moments(*leaves, logit, width, positive=positive)
    base = Normal(*leaves[:2])
    law = (PositiveHard if positive else Hard)(base, leaves[2])
    slab = HalfNormal(width) if positive else Normal(torch.zeros_like(width), width)
    close = {"rtol": tolerance, "atol": tolerance}
    pairs = {
        "γ": (m.probability, law.activation_probability),
        "E z": (m.mean, law.mean),
        "Var z": (m.variance, law.variance),
        "KL": (m.kl, kl_divergence(law, SpikeSlab(slab, logit))),
    }
    for name, (one_pass, plain) in pairs.items():
        torch.testing.assert_close(one_pass, plain, msg=lambda text, name=name: f"{name}: {text}", **close)
        for a, b in zip(
            *(torch.autograd.grad(v.sum(), leaves, retain_graph=True) for v in (one_pass, plain)), strict=True
        ):
            torch.testing.assert_close(a, b, msg=lambda text, name=name: f"gradient of {name}: {text}", **close)
    (slope,) = torch.autograd.grad(law.activation_probability.sum(), leaves[2])
    torch.testing.assert_close(m.slope, slope, **close)


MODELS = {
    "hard under spike-slab": (GaussianPosterior, SpikeSlabPrior, Hard),
    "hard under learned spike-slab": (GaussianPosterior, lambda: LearnedSpikeSlabPrior(0.2, 1.0), Hard),
    "positive": (GaussianPosterior, lambda: LearnedSpikeSlabPrior(0.2, 1.0, positive=True), PositiveHard),
    "hard, prior on s": (GaussianPosterior, NormalPrior, Hard),
    "shifted laplace": (LaplacePosterior, LaplacePrior, ShiftedSoft),
    "centred laplace": (LaplacePosterior, LaplacePrior, CentredSoft),
}
every_model = pytest.mark.parametrize("name", MODELS)


def build(head: type, prior: type[Prior], law: type) -> VariationalCoder:
    threshold = Threshold(law, FixedLevel(0.4))
    return VariationalCoder(
        LinearEncoder(5), head(5, 7), prior(), Dictionary(5, 7), Expected(), threshold=threshold
    ).double()


def run(coder: VariationalCoder, objective: Objective, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    coder.zero_grad()
    loss = objective(coder.evidence(x)).loss
    loss.mean().backward()
    return loss.detach(), {name: p.grad.clone() for name, p in coder.named_parameters() if p.grad is not None}


@every_model
def test_expected_equals_the_plain_one(name: str) -> None:
    """Loss and every gradient, to 1e-6 in float64."""
    coder, x = build(*MODELS[name]), torch.randn(6, 5, dtype=torch.float64)
    (fast, fast_grads), (plain, plain_grads) = (run(coder, objective, x) for objective in (Expected(), ExpectedPlain()))
    torch.testing.assert_close(fast, plain, rtol=1e-6, atol=1e-6)
    assert fast_grads.keys() == plain_grads.keys() == dict(coder.named_parameters()).keys()
    for key, grad in plain_grads.items():
        torch.testing.assert_close(fast_grads[key], grad, rtol=1e-5, atol=1e-6)


@every_model
@torch.no_grad()
def test_expected_misfit_is_that_of_samples(name: str) -> None:
    """And so is the count; five standard errors."""
    coder, x = build(*MODELS[name]), torch.randn(6, 5, dtype=torch.float64)
    evidence, n = coder.evidence(x), 20_000
    terms = Expected()(evidence)
    z = evidence.codes(evidence.noise(n))
    for draws, expected in ((evidence.misfit(z), terms.misfit), ((z != 0).sum(-1).double(), terms.active)):
        assert ((draws.mean(0) - expected).abs() < 5 * draws.std(0) / n**0.5).all()


@torch.no_grad()
def test_noise_variance_is_the_best_one() -> None:
    """The loss is −ELBO in nats at v = mean misfit, and no other v gives a lower mean."""
    coder, x = build(*MODELS["hard under spike-slab"]), torch.randn(6, 5, dtype=torch.float64)
    terms = Expected()(coder.evidence(x))

    def negative_bound(v: float) -> float:
        return float((2.5 * math.log(2 * math.pi * v) + 5 * terms.misfit / (2 * v) + terms.kl).mean())

    best = float(terms.misfit.mean())
    assert float(terms.loss.mean()) == pytest.approx(negative_bound(best), rel=1e-9)
    assert all(negative_bound(factor * best) > negative_bound(best) for factor in (0.9, 0.99, 1.01, 1.1))


@pytest.mark.parametrize(
    ("law", "prior"), [(PositiveHard, SpikeSlabPrior), (Hard, lambda: LearnedSpikeSlabPrior(0.2, positive=True))]
)
def test_law_and_prior_of_different_signs_are_refused(law: type, prior: type[Prior]) -> None:
    coder = build(GaussianPosterior, prior, law)
    with pytest.raises(NotImplementedError, match="closed-form"):
        Expected()(coder.evidence(torch.randn(6, 5, dtype=torch.float64)))


def test_laplace_base_has_no_closed_form_under_a_spike_slab() -> None:
    coder = build(LaplacePosterior, SpikeSlabPrior, Hard)
    with pytest.raises(NotImplementedError, match="Laplace"):
        Expected()(coder.evidence(torch.randn(6, 5, dtype=torch.float64)))
