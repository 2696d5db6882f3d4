"""The importance-weighted bound: exact where the posterior is, rising to log p(x) with J where it is not."""

import math

import pytest
import torch
from laws import Setting, quadrature
from scipy import stats
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from softspike.encoder import LinearEncoder
from softspike.generator import Dictionary
from softspike.model import VariationalCoder
from softspike.objective import ImportanceWeighted, importance_weighted_bound
from softspike.posterior import GaussianPosterior, LaplacePosterior, SpikeSlab, SpikeSlabPosterior
from softspike.prior import LaplacePrior, LearnedSpikeSlabPrior, NormalPrior, SpikeSlabPrior
from softspike.threshold import CentredSoft, FixedLevel, GammaLevel, Hard, PositiveHard, ShiftedSoft, Threshold

BETA = 0.4


def linear_gaussian(shift: float = 0.0, stretch: float = 1.0) -> tuple[VariationalCoder, Tensor, Tensor]:
    """A coder on orthogonal atoms, whose factorial posterior can be exact; x (3, 4); and the exact log p(x)."""
    d = 3
    norms = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    atoms = torch.linalg.qr(torch.randn(4, d, dtype=torch.float64)).Q * norms
    coder = VariationalCoder(
        LinearEncoder(4), GaussianPosterior(4, d), NormalPrior(0.5), Dictionary(4, d), ImportanceWeighted(5), beta=BETA
    ).double()
    v, v0 = BETA * 4 / 2, float(coder.prior.scale) ** 2
    variance = 1 / (1 / v0 + atoms.square().sum(0) / v)
    with torch.no_grad():
        coder.generator.weight.copy_(atoms)
        coder.posterior.location.weight.copy_((variance / v)[:, None] * atoms.T)
        coder.posterior.location.bias.fill_(shift)
        coder.posterior.log_variance.weight.zero_()
        coder.posterior.log_variance.bias.copy_((stretch * variance).log())
    x = torch.randn(3, 4, dtype=torch.float64)
    covariance = v0 * atoms @ atoms.T + v * torch.eye(4, dtype=torch.float64)
    return coder, x, MultivariateNormal(torch.zeros(4, dtype=torch.float64), covariance).log_prob(x)


@pytest.mark.parametrize("n_samples", [1, 5, 50])
@torch.no_grad()
def test_bound_is_exact_under_the_exact_posterior(n_samples: int) -> None:
    """Every weight is p(x), whatever is drawn, for every J."""
    coder, x, exact = linear_gaussian()
    torch.testing.assert_close(coder.bound(x, n_samples), exact, rtol=1e-6, atol=1e-6)


@torch.no_grad()
def test_bound_rises_to_the_exact_value_with_samples() -> None:
    """Under a perturbed posterior: J = 1 < 5 < 50 < log p(x) in the mean of paired repeats, by five standard errors."""
    coder, x, exact = linear_gaussian(shift=0.4, stretch=1.5)
    evidence, repeats = coder.evidence(x), 2000
    weights = evidence.log_weights(evidence.noise(50 * repeats)).reshape(repeats, 50, 3)
    one, five, fifty = (torch.stack([importance_weighted_bound(w[:n]) for w in weights]).mean(-1) for n in (1, 5, 50))
    truth = exact.mean()
    for lower, higher in ((one, five), (five, fifty), (fifty, truth.expand(repeats))):
        gain = higher - lower
        assert gain.mean() > 5 * gain.std() / repeats**0.5
    assert truth - one.mean() > 0.3
    assert truth - fifty.mean() < 0.05
    torch.testing.assert_close(importance_weighted_bound(weights.reshape(-1, 3)), exact, rtol=0, atol=0.02)


SPARSE = {
    "shifted normal": (ShiftedSoft, GaussianPosterior, lambda: NormalPrior(0.5)),
    "shifted laplace": (ShiftedSoft, LaplacePosterior, lambda: LaplacePrior(0.5)),
    "centred normal": (CentredSoft, GaussianPosterior, lambda: NormalPrior(0.5)),
    "centred laplace": (CentredSoft, LaplacePosterior, lambda: LaplacePrior(0.5)),
    "hard normal": (Hard, GaussianPosterior, lambda: NormalPrior(0.5)),
    "hard laplace": (Hard, LaplacePosterior, lambda: LaplacePrior(0.5)),
    "hard normal under a spike-slab": (Hard, GaussianPosterior, lambda: SpikeSlabPrior(0.3, 0.5)),
    "positive normal under a half-normal spike-slab": (
        PositiveHard,
        GaussianPosterior,
        lambda: LearnedSpikeSlabPrior(0.3, 0.7, positive=True),
    ),
    "spike-slab": (None, SpikeSlabPosterior, lambda: SpikeSlabPrior(0.3, 0.5)),
}
LEVEL = 0.4


def sparse_coder(name: str, d: int, level: torch.nn.Module) -> VariationalCoder:
    """Two features, d components, a posterior head a little wider than the prior so that no weight is wild."""
    law, head, prior = SPARSE[name]
    coder = VariationalCoder(
        LinearEncoder(2), head(2, d), prior(), Dictionary(2, d), ImportanceWeighted(5),
        threshold=None if law is None else Threshold(law, level), beta=BETA,
    ).double()  # fmt: skip
    with torch.no_grad():
        for layer in coder.posterior.children():
            layer.weight.mul_(0.3)
            layer.bias.fill_(-0.2)
    return coder


def mixed_nodes(law: Distribution, scale: float, level: float) -> tuple[Tensor, Tensor]:
    """Points and probabilities that integrate against a scalar law with an atom at 0."""
    grid = quadrature(Setting(0.0, scale, level), reach=25, per_scale=4)
    nodes, weights = grid.nodes.flatten(), grid.weights.flatten()
    zero = torch.zeros(1, dtype=torch.float64)
    return torch.cat([zero, nodes]), torch.cat([law.log_prob(zero).exp(), law.log_prob(nodes).exp() * weights])


def log_evidence(coder: VariationalCoder, law: Distribution, level: float, x: Tensor, gap: float = 0.0) -> Tensor:
    """log p(x) for d = 1 or 2 by integrating over every support: z = 0 or |z| > gap in each component."""
    scale = float((law.slab if isinstance(law, SpikeSlab) else law.base).scale)
    points, masses = mixed_nodes(law, scale, level)
    assert float(masses.sum()) == pytest.approx(1, abs=1e-6)
    masses = masses * ((points == 0) | (points.abs() > gap))
    atoms = coder.generator.atoms.detach()
    z = torch.cartesian_prod(*[points] * atoms.shape[1]).reshape(-1, atoms.shape[1])
    mass = torch.cartesian_prod(*[masses] * atoms.shape[1]).reshape(-1, atoms.shape[1]).prod(-1)
    v = BETA * 2 / 2
    squared = (x[:, None] - z @ atoms.T).square().sum(-1)
    return torch.logsumexp(mass.log() - 0.5 * squared / v, -1) - math.log(2 * math.pi * v)


def assert_bound_reaches(coder: VariationalCoder, x: Tensor, exact: Tensor, n: int = 40_000) -> None:
    """Within five standard errors of log (1/J)Σw, which is √(Var w/J)/E w; and J = 1 lies below."""
    evidence = coder.evidence(x)
    weights = evidence.log_weights(evidence.noise(n))
    bound = importance_weighted_bound(weights)
    relative = (weights - bound).exp()
    error = 5 * relative.std(0) / n**0.5
    assert error.max() < 0.1, "the comparison would prove nothing"
    assert ((bound - exact).abs() < error + 1e-4).all(), (bound, exact, error)
    assert (weights.mean(0) < exact).all()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("name", SPARSE)
@torch.no_grad()
def test_bound_reaches_the_evidence_of_a_sparse_model(name: str, d: int) -> None:
    coder = sparse_coder(name, d, FixedLevel(LEVEL))
    x = torch.tensor([[0.0, 0.0], [0.5, -0.3], [1.5, 1.0]], dtype=torch.float64)
    prior = coder.prior.law
    if isinstance(prior, SpikeSlab) and coder.threshold is not None:
        # A hard posterior never proposes 0 < |z| ≤ λ, where this prior has mass: the bound reaches what is left.
        reached = log_evidence(coder, prior, LEVEL, x, gap=LEVEL)
        assert (reached < log_evidence(coder, prior, LEVEL, x) - 1e-3).all()
        assert_bound_reaches(coder, x, reached)
        return
    law = prior if coder.threshold is None else coder.threshold.law(prior, coder.threshold.level.value)
    assert_bound_reaches(coder, x, log_evidence(coder, law, LEVEL, x))


@pytest.mark.parametrize("name", ["shifted laplace", "centred normal"])
@torch.no_grad()
def test_bound_reaches_the_evidence_under_a_gamma_level(name: str) -> None:
    """log p(x) = log E_λ[p(x|λ)], λ by 200 quantiles of its prior."""
    coder = sparse_coder(name, 1, GammaLevel(2, 1, mean=LEVEL))
    level = coder.threshold.level
    for layer in (level.log_concentration, level.log_rate):
        layer.weight.mul_(0.1)
    level.log_concentration.bias.fill_(math.log(2.5))
    level.log_rate.bias.fill_(math.log(6.0))
    x = torch.tensor([[0.0, 0.0], [1.5, 1.0]], dtype=torch.float64)
    quantiles = stats.gamma.ppf((torch.arange(200).numpy() + 0.5) / 200, 3.0, scale=LEVEL / 3)
    each = [
        log_evidence(coder, coder.threshold.law(coder.prior.law, torch.tensor(value)), float(value), x)
        for value in quantiles
    ]
    assert_bound_reaches(coder, x, torch.logsumexp(torch.stack(each), 0) - math.log(200))


@pytest.mark.parametrize("name", SPARSE)
def test_objective_is_the_bound_and_has_finite_gradients(name: str) -> None:
    coder = sparse_coder(name, 2, FixedLevel(LEVEL))
    x = torch.randn(4, 2, dtype=torch.float64)
    evidence = coder.evidence(x)
    weights = evidence.log_weights(evidence.noise(5, torch.Generator().manual_seed(1)))
    terms = ImportanceWeighted(5)(evidence, torch.Generator().manual_seed(1))
    torch.testing.assert_close(terms.loss, -BETA * (weights.exp().mean(0)).log())
    terms.loss.mean().backward()
    grads = {key: p.grad for key, p in coder.named_parameters()}
    assert all(grad is not None and grad.isfinite().all() for grad in grads.values())
    assert all(grad.abs().max() > 0 for grad in grads.values())


@pytest.mark.parametrize("law", [ShiftedSoft, CentredSoft, Hard])
@pytest.mark.parametrize(
    "base", [(GaussianPosterior, NormalPrior), (LaplacePosterior, LaplacePrior)], ids=["normal", "laplace"]
)
def test_gradients_stay_finite_where_activity_is_certain(law: type, base: tuple[type, type]) -> None:
    """In float32 with |μ| ≫ λ, γ rounds to 1 and log(1 − γ) to −∞: the branch not taken must not leak NaN."""
    head, prior = base
    coder = VariationalCoder(
        LinearEncoder(2), head(2, 3), prior(), Dictionary(2, 3), ImportanceWeighted(5), Threshold(law, FixedLevel(1e-9))
    )
    with torch.no_grad():
        coder.posterior.location.bias.fill_(5.0)
    coder.loss(torch.randn(4, 2), 0).total.backward()
    assert all(p.grad.isfinite().all() for p in coder.parameters())


def test_bound_of_equal_weights_is_the_weight() -> None:
    weights = torch.full((7, 3), -1000.0)
    torch.testing.assert_close(importance_weighted_bound(weights), torch.full((3,), -1000.0))
