"""The paper's linear study as objects: its settings, its conventions, its two-group step."""

import pytest
import torch
from torch import nn

from softspike.data import TensorRows
from softspike.methods.published import EQUATIONS, PUBLISHED, SCRIPTS, Study, build_published, published_recipe
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import LaplacePosterior, SpikeSlabPosterior
from softspike.solver import FistaCoder
from softspike.threshold import DoubledStraightThrough, GammaLevel, StraightThrough
from softspike.train import train, train_replicas

SMALL = Study(n_features=16, n_components=12, n_steps=60, batch_size=20, widths=(24, 20))
VARIATIONAL = [name for name in PUBLISHED if name != "fista"]


def built(name, **options):
    return build_published(PUBLISHED[name], **{"study": SMALL, "objective": BestOf(4), **options})


@pytest.mark.parametrize("name", VARIATIONAL)
def test_the_settings_are_the_papers(name):
    coder, recipe = build_published(PUBLISHED[name])
    assert isinstance(coder, VariationalCoder)
    widths = [layer.weight.shape for layer in coder.encoder.layers if isinstance(layer, nn.Linear)]
    assert widths == [(512, 256), (1024, 512), (512, 1024), (256, 512)]
    assert coder.beta == pytest.approx(1e-2)
    assert coder.level_beta == pytest.approx(1e-3)
    assert coder.generator.frobenius == 1e-4
    torch.testing.assert_close(coder.generator.atoms.norm(dim=0), torch.ones(256))
    assert (recipe.n_steps, recipe.batch_size, recipe.clip_norm) == (240_000, 100, None)
    if coder.threshold is not None:
        level, value = coder.threshold.level, 0.52 if "gaussian" in name else 0.25
        if isinstance(level, GammaLevel):
            assert level.prior.concentration == 3
            assert level.prior.mean == pytest.approx(value)
        else:
            assert level.value == pytest.approx(value)


def test_fista_has_the_papers_settings():
    coder, recipe = build_published(PUBLISHED["fista"])
    assert isinstance(coder, FistaCoder)
    assert (float(coder.penalty), coder.generator.frobenius) == (20.0, 1e-3)
    assert [coder.warm_up(step) for step in (0, 1000, 9000, 10**6)] == pytest.approx([0.1, 0.2, 1.0, 1.0])
    assert recipe == published_recipe(Study())


def test_conventions_differ_where_the_scripts_depart():
    def spike_and_slab(conventions):
        head = build_published(PUBLISHED["spike-and-slab"], conventions=conventions).coder.posterior
        assert isinstance(head, SpikeSlabPosterior)
        logits = head.read_spike(torch.tensor([-1.0, 2.0]))
        return [head.warm_up(step) for step in (0, 1500, 2500)], logits.drawn.sigmoid()

    omega, rate = spike_and_slab(EQUATIONS)
    assert omega == pytest.approx([0.0, 0.0, 0.2])
    torch.testing.assert_close(rate, torch.tensor([-1.0, 2.0]).sigmoid())
    omega, rate = spike_and_slab(SCRIPTS)
    assert omega == pytest.approx([0.1, 0.1, 0.3])
    gamma = torch.tensor([-1.0, 0.0]).exp()  # log γ = −max(−raw, 0), taken for a logit
    torch.testing.assert_close(rate, gamma / (1 + gamma))

    for conventions, omega_at_1500, kind in ((EQUATIONS, 0.4, StraightThrough), (SCRIPTS, 0.1, DoubledStraightThrough)):
        coder = build_published(PUBLISHED["thresholded-laplacian"], conventions=conventions).coder
        assert isinstance(coder.posterior, LaplacePosterior)
        assert coder.posterior.warm_up(1500) == pytest.approx(omega_at_1500)
        assert type(coder.threshold.gradient) is kind


def test_the_first_step_is_the_published_one():
    """A ← A − 0.5·∇(½·SSE/B + κ‖A‖²) and one Nesterov step from rest at lr/25, from codes drawn once."""
    coder, recipe = built("thresholded-laplacian")
    coder.double()
    x = torch.randn(20, 16, dtype=torch.float64)
    evidence = coder.evidence(x, 0)
    z = evidence.codes(evidence.noise(1, torch.Generator().manual_seed(3)))[0]
    misfit, kl = (x - z @ coder.generator.atoms.T).square(), evidence.kl().mean()
    head, atoms = coder.posterior.location.weight, coder.generator.atoms
    (own,) = torch.autograd.grad(0.5 * misfit.sum() / 20 + 1e-4 * atoms.square().sum(), atoms, retain_graph=True)
    (slope,) = torch.autograd.grad(misfit.mean() + 1e-2 * kl, head)
    expected = atoms.detach() - 0.5 * own, head.detach() - 4e-4 * (1 + 0.9) * slope

    optimizer = recipe.build(coder.parameter_groups())
    recipe.set_rates(optimizer, 0)
    loss = (x - z.detach() @ atoms.T).square().mean()
    evidence = coder.evidence(x, 0)
    z = evidence.codes(evidence.noise(1, torch.Generator().manual_seed(3)))
    torch.testing.assert_close(evidence.misfit(z).mean(), loss)
    total = evidence.misfit(z).mean() + coder.beta * evidence.kl().mean() + evidence.unit * coder.generator.penalty()
    total.backward()
    optimizer.step()
    torch.testing.assert_close(atoms.detach(), expected[0])
    torch.testing.assert_close(head.detach(), expected[1])


@pytest.mark.parametrize("conventions", [SCRIPTS, EQUATIONS], ids=["scripts", "equations"])
def test_replicas_are_what_each_would_be_alone(conventions):
    rows = TensorRows(torch.randn(200, 16))
    seeds = [0, 1, 0]
    names = ["thresholded-gaussian", "thresholded-gaussian", "fista"]
    together = [built(name, conventions=conventions, seed=seed) for name, seed in zip(names, seeds, strict=True)]
    alone = [built(name, conventions=conventions, seed=seed) for name, seed in zip(names, seeds, strict=True)]
    ends = train_replicas([b.coder for b in together], rows, together[0].recipe, seeds=seeds)
    assert ends == [None, None, None]
    for one, seed, other in zip(alone, seeds, together, strict=True):
        before = {name: value.clone() for name, value in one.coder.state_dict().items()}
        train(one.coder, rows, one.recipe, seed=seed)
        for name, value in one.coder.state_dict().items():
            torch.testing.assert_close(other.coder.state_dict()[name], value, rtol=0, atol=0, equal_nan=True)
        assert not torch.equal(before["generator.weight"], one.coder.generator.atoms)


def test_a_replica_that_diverges_leaves_the_others_alone():
    rows = TensorRows(torch.randn(200, 16))
    good, bad = built("gaussian"), built("gaussian")
    with torch.no_grad():
        bad.coder.generator.weight.fill_(torch.inf)
    ends = train_replicas([bad.coder, good.coder], rows, good.recipe, seeds=[0, 0])
    assert ends[0] is not None
    assert ends[0].step == 1
    assert ends[1] is None
    with pytest.raises(ValueError, match="2 coders and 1 seeds"):
        train_replicas([bad.coder, good.coder], rows, good.recipe, seeds=[0])
