"""Objectives over J samples: the fast best-of equals the plain one, and the mean is the β-ELBO."""

import math

import pytest
import torch
from torch import Tensor, nn

from softspike.encoder import MLPEncoder
from softspike.generator import Dictionary, Generator, UnitNormDictionary
from softspike.model import VariationalCoder
from softspike.objective import BestOf, BestOfPlain, MeanOf, Objective
from softspike.objective.evidence import Noise
from softspike.objective.samples import draws
from softspike.posterior import GaussianPosterior, LaplacePosterior, SpikeSlabPosterior
from softspike.prior import LaplacePrior, NormalPrior, SpikeSlabPrior
from softspike.threshold import (
    CentredSoft,
    DoubledStraightThrough,
    FixedLevel,
    GammaLevel,
    Hard,
    ShiftedSoft,
    Threshold,
)

B, D, COMPONENTS, WIDTH = 7, 5, 6, 8


class Curved(Generator):
    """A small non-linear generator."""

    n_features, n_components = D, COMPONENTS

    def __init__(self, n_features: int, n_components: int):
        super().__init__()
        self.map = nn.Sequential(nn.Linear(n_components, 9), nn.Tanh(), nn.Linear(9, n_features))

    def forward(self, z: Tensor) -> Tensor:
        return self.map(z)


POSTERIORS = {
    "gaussian": (GaussianPosterior, NormalPrior),
    "laplace": (LaplacePosterior, LaplacePrior),
    "spike-slab": (SpikeSlabPosterior, SpikeSlabPrior),
}
THRESHOLDS = {
    "none": lambda: None,
    "shifted": lambda: Threshold(ShiftedSoft, FixedLevel(0.4)),
    "shifted doubled": lambda: Threshold(ShiftedSoft, FixedLevel(0.4), DoubledStraightThrough()),
    "shifted gamma": lambda: Threshold(ShiftedSoft, GammaLevel(WIDTH, COMPONENTS, mean=0.4)),
    "centred gamma": lambda: Threshold(CentredSoft, GammaLevel(WIDTH, COMPONENTS, mean=0.4)),
    "hard": lambda: Threshold(Hard, FixedLevel(0.4)),
}
GENERATORS = {"dictionary": Dictionary, "unit": UnitNormDictionary, "curved": Curved}
MODELS = [
    (posterior, threshold, generator)
    for posterior in POSTERIORS
    for threshold in (THRESHOLDS if posterior != "spike-slab" else ["none"])
    for generator in GENERATORS
]
every_model = pytest.mark.parametrize(("posterior", "threshold", "generator"), MODELS)


def build(posterior: str, threshold: str, generator: str) -> VariationalCoder:
    torch.manual_seed(3)
    head, prior = POSTERIORS[posterior]
    return VariationalCoder(
        encoder=MLPEncoder(D, (12, WIDTH)),
        posterior=head(WIDTH, COMPONENTS),
        prior=prior(),
        threshold=THRESHOLDS[threshold](),
        generator=GENERATORS[generator](D, COMPONENTS),
        objective=MeanOf(1),
        beta=0.1,
        level_beta=0.02,
    )


def run(coder: VariationalCoder, objective: Objective, x: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """The loss of each input, every parameter's gradient, and the active counts, from the same random numbers."""
    coder.objective = objective
    coder.zero_grad()
    terms = objective(coder.evidence(x, step=0), torch.Generator().manual_seed(5))
    terms.loss.mean().backward()
    grads = {name: p.grad.clone() for name, p in coder.named_parameters() if p.grad is not None}
    return terms.loss.detach(), grads, terms.active


@every_model
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-11)], ids=["32", "64"])
def test_best_of_equals_the_plain_one(
    posterior: str, threshold: str, generator: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Loss, counts and every gradient; and it is the winner of several, not just any."""
    coder = build(posterior, threshold, generator).to(dtype)
    x = torch.randn(B, D, dtype=dtype)
    (fast, fast_grads, fast_active), (plain, plain_grads, plain_active) = (
        run(coder, objective, x) for objective in (BestOf(8), BestOfPlain(8))
    )
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(fast, plain, **close)
    assert torch.equal(fast_active, plain_active)
    assert fast_grads.keys() == plain_grads.keys() == dict(coder.named_parameters()).keys()
    for name, grad in plain_grads.items():
        torch.testing.assert_close(fast_grads[name], grad, msg=lambda text, name=name: f"{name}: {text}", **close)
        assert grad.abs().max() > 0, name
    mean, _, _ = run(coder, MeanOf(8), x)
    assert (plain < mean).all()


@every_model
def test_one_sample_is_the_mean_of_one(posterior: str, threshold: str, generator: str) -> None:
    coder, x = build(posterior, threshold, generator), torch.randn(B, D)
    (mean, mean_grads, _), *others = (run(coder, objective, x) for objective in (MeanOf(1), BestOf(1), BestOfPlain(1)))
    for loss, grads, _ in others:
        torch.testing.assert_close(loss, mean)
        for name, grad in mean_grads.items():
            torch.testing.assert_close(grads[name], grad)


@pytest.mark.parametrize("threshold", ["shifted", "shifted gamma"])
def test_winner_is_the_lowest_of_the_losses(threshold: str) -> None:
    coder, x = build("laplace", threshold, "dictionary"), torch.randn(B, D)
    evidence = coder.evidence(x, step=0)
    drawn = Noise.joined(list(draws(evidence, 8, torch.Generator().manual_seed(5))))
    misfits = evidence.misfit(evidence.codes(drawn))
    assert misfits.shape == (8, B)
    terms = BestOf(8)(evidence, torch.Generator().manual_seed(5))
    torch.testing.assert_close(terms.misfit, misfits.amin(0))
    torch.testing.assert_close(terms.loss, misfits.amin(0) + 0.1 * terms.kl)


def test_terms_of_the_loss() -> None:
    """misfit is a mean over features, the KL a sum over components, the level's KL enters with β₂/β."""
    coder, x = build("laplace", "shifted gamma", "dictionary"), torch.randn(B, D)
    evidence = coder.evidence(x, step=0)
    z = evidence.codes(evidence.noise(1, torch.Generator().manual_seed(5)))
    terms = MeanOf(1)(evidence, torch.Generator().manual_seed(5))
    torch.testing.assert_close(terms.misfit, (x - z[0] @ coder.generator.atoms.T).square().sum(-1) / D)
    h = coder.encoder(x)
    q, p = coder.posterior(h).settled, coder.prior.law
    base = torch.distributions.kl_divergence(q, p).sum(-1)
    level = torch.distributions.kl_divergence(coder.threshold.level(h), coder.threshold.level.prior).sum(-1)
    torch.testing.assert_close(0.1 * terms.kl, 0.1 * base + 0.02 * level)
    torch.testing.assert_close(terms.active, (z[0] != 0).float().sum(-1))


def test_the_scale_of_the_bound() -> None:
    """β·(−ELBO) = misfit + β·KL + (βD/2)·log(2πv): the mean of log weights against MeanOf, five standard errors."""
    coder, x = build("gaussian", "none", "dictionary").double(), torch.randn(B, D, dtype=torch.float64)
    evidence = coder.evidence(x)
    with torch.no_grad():
        n = 20_000
        weights = evidence.log_weights(evidence.noise(n))
        misfit = MeanOf(n)(evidence)
        v = 0.1 * D / 2
        assert evidence.noise_variance == pytest.approx(v)
        expected = misfit.loss + 0.1 * (D / 2) * math.log(2 * math.pi * v)
    error = 5 * 0.1 * weights.std(0) * (2 / n) ** 0.5
    assert ((-0.1 * weights.mean(0) - expected).abs() < error).all()
