"""The fused step equals the plain one fed with the same random numbers, and replicas equal training alone."""

import copy
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("triton", reason="kernels need Triton")

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))

from reference import train_plainly

from softspike.data import TensorRows
from softspike.encoder import LinearEncoder
from softspike.layers import ImageShape
from softspike.methods.published import EQUATIONS, PUBLISHED, SCRIPTS, Study, build_published
from softspike.methods.registry import METHODS, Plan, build
from softspike.objective import BestOf, MeanOf
from softspike.posterior import LaplacePosterior, log_of_rate
from softspike.prior import NormalPrior
from softspike.schedule import Constant
from softspike.threshold import ShiftedSoft, Subgradient, Threshold, TrackedLevel
from softspike.train import train_in_turn, train_replicas
from softspike.train.augment import Mirrored
from softspike.train.fused import NotFused, train_fused
from softspike.train.fused import fista as fused_fista
from softspike.train.fused.engine import prepare

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
VARIATIONAL = [name for name in PUBLISHED if name != "fista"]
ODD = Study(n_features=11, n_components=19, n_steps=3, batch_size=9, widths=(21, 17))  # no multiple of any tile
ROWS = TensorRows(torch.randn(24, 11, generator=torch.Generator().manual_seed(5)))
UNCLIPPED = replace(SCRIPTS, read_spike=log_of_rate)
SUBGRADIENT = type(EQUATIONS)(Subgradient(), EQUATIONS.read_spike, 0.0, 0)


def built(name, conventions, n_samples, seed, study=ODD):
    return build_published(PUBLISHED[name], study, conventions, BestOf(n_samples), seed)


CASES = [(name, SCRIPTS, 6, 0) for name in VARIATIONAL]
CASES += [(name, EQUATIONS, 1, 1) for name in VARIATIONAL]
CASES += [("spike-and-slab", UNCLIPPED, 6, 0), ("spike-and-slab", UNCLIPPED, 1, 1)]
CASES += [("thresholded-laplacian", SUBGRADIENT, 2, 0), ("thresholded-gaussian-gamma", SUBGRADIENT, 5, 1)]


# tf32, a GPU's default, may choose another sample where two are nearly as good.
exactly = partial(train_fused, precision="ieee")


def weights(coder):
    return torch.cat([p.detach().cpu().flatten() for p in coder.parameters()])


@pytest.fixture(scope="module")
def trained():
    """All cases as replicas of one program, and the same cases trained plainly."""
    coders, recipe = [built(*case).coder for case in CASES], built(*CASES[0]).recipe
    plain = [copy.deepcopy(coder) for coder in coders]
    losses = []

    class Watch:
        def logged(self, progress):
            losses.append((progress.step, progress.loss))

        def saved(self, progress): ...

    seeds = [seed for *_, seed in CASES]
    ends = train_replicas(coders, ROWS, recipe, seeds=seeds, device=DEVICE, engine=exactly, observers=[Watch()])
    terms = [train_plainly(coder, ROWS, recipe, seed) for coder, seed in zip(plain, seeds, strict=True)]
    return coders, plain, ends, losses, torch.stack(terms)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n][0]}, J={CASES[n][2]}, {n}")
def test_a_fused_run_equals_the_plain_one(trained, number):
    """After three steps, one and a half epochs. Float32 sums in another order: 2e-5."""
    fused, plain = weights(trained[0][number]), weights(trained[1][number])
    assert float((fused - plain).norm() / plain.norm()) < 2e-5


def test_losses_are_those_of_the_plain_run(trained):
    *_, ends, losses, terms = trained
    assert ends == [None] * len(CASES)
    assert [step for step, _ in losses] == [2, 3]
    means = [torch.stack([loss.misfit, loss.kl, loss.active]) for _, loss in losses]
    mean = (2 * means[0] + means[1]) / 3
    torch.testing.assert_close(mean, terms.mean(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["fista", "spike-and-slab", "thresholded-laplacian"])
def test_what_is_logged_is_the_whole_loss(name):
    """Misfit, β times the divergence, and the penalty on the atoms, by both engines, to what float32 leaves of 1."""
    recipe = replace(built(name, SCRIPTS, 1, 0).recipe, n_steps=1)
    rests, first = [], built(name, SCRIPTS, 1, 0).coder.generator
    for engine in (exactly, train_in_turn):
        coder, logged = built(name, SCRIPTS, 1, 0).coder, []
        watch = SimpleNamespace(logged=lambda now, to=logged: to.append(now.loss), saved=lambda now: None)
        train_replicas([coder], ROWS, recipe, seeds=[0], device=DEVICE, engine=engine, observers=[watch])
        (loss,) = logged
        rests.append(float(loss.total - loss.misfit - getattr(coder, "beta", 0.0) * loss.kl))
    assert rests == pytest.approx(2 * [2 / 11 * float(first.penalty().detach())], abs=1e-6)


def test_a_replica_equals_training_alone():
    """On a CPU bit for bit: what a replica computes does not depend on its neighbours."""
    cases = [("thresholded-laplacian-gamma", SCRIPTS, 3, 0), ("gaussian", SCRIPTS, 1, 0), ("gaussian", SCRIPTS, 2, 4)]
    together, recipe = [built(*case).coder for case in cases], built(*cases[0]).recipe
    alone = [copy.deepcopy(coder) for coder in together]
    train_replicas(together, ROWS, recipe, seeds=[0, 0, 4], device=DEVICE, engine=train_fused)
    for coder, seed in zip(alone, [0, 0, 4], strict=True):
        train_replicas([coder], ROWS, recipe, seeds=[seed], device=DEVICE, engine=train_fused)
    for one, other in zip(together, alone, strict=True):
        if DEVICE == "cpu":
            assert torch.equal(weights(one), weights(other))
        else:
            torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=1e-3)


# Triton's interpreter multiplies bfloat16 numbers as if their bits were whole numbers.
ON_A_GPU = pytest.mark.skipif(DEVICE == "cpu", reason="scores on bfloat16 atoms need a GPU")


@pytest.mark.parametrize("n_samples", [1, pytest.param(6, marks=ON_A_GPU)])
def test_lower_precision_follows_the_plain_run(n_samples):
    """As a GPU trains: products in tf32 (there; a CPU has none), scores on bfloat16 atoms. The mean misfit of three
    steps to 1 %. Weights to 5e-3 of their norm after three steps with one sample; with six another may be chosen where
    two are nearly as good, and 2e-2 is still a tenth of what training moves them."""
    coders, recipe = [built(name, SCRIPTS, n_samples, 0).coder for name in VARIATIONAL], built(*CASES[0]).recipe
    plain, start = [copy.deepcopy(coder) for coder in coders], [weights(coder) for coder in coders]
    misfits = []
    watch = SimpleNamespace(logged=lambda now: misfits.append(now.loss.misfit), saved=lambda now: None)
    engine = partial(train_fused, precision="tf32")
    seeds = [0] * len(coders)
    train_replicas(coders, ROWS, recipe, seeds=seeds, device=DEVICE, engine=engine, observers=[watch])
    terms = torch.stack([train_plainly(coder, ROWS, recipe, 0) for coder in plain])
    torch.testing.assert_close((2 * misfits[0] + misfits[1]) / 3, terms.mean(0)[0], rtol=1e-2, atol=0)
    for fused, exact, before in zip(coders, plain, start, strict=True):
        error = float((weights(fused) - weights(exact)).norm() / weights(exact).norm())
        assert error < (5e-3 if n_samples == 1 else 2e-2), f"{error:.4g}"
        assert float((weights(exact) - before).norm() / weights(exact).norm()) > 0.1


def test_samples_are_scored_on_the_atoms_as_they_are():
    """The copy in bfloat16 that a GPU scores on follows every step of the dictionary."""
    cases = [("thresholded-laplacian", SCRIPTS, 6, 0), ("gaussian", SCRIPTS, 2, 4)]
    coders, recipe = [built(*case).coder for case in cases], built(*cases[0]).recipe
    run = prepare(coders, ROWS, recipe, [0, 4], DEVICE, precision="tf32")
    before = run.step.replicas.atoms.clone()
    run.run_epoch()
    atoms = run.step.replicas.atoms
    assert float((atoms - before).norm()) > 0.05 * float(before.norm())
    assert torch.equal(run.step.scoring_atoms, atoms.bfloat16())


def test_a_replica_that_diverges_leaves_the_others_alone():
    coders, recipe = [built("gaussian", SCRIPTS, 1, seed).coder for seed in (0, 1)], built(*CASES[0]).recipe
    with torch.no_grad():
        coders[0].generator.weight[0, 0] = float("nan")
    first, second = train_replicas(coders, ROWS, recipe, seeds=[0, 1], device=DEVICE, engine=train_fused)
    assert "not finite" in str(first)
    assert second is None
    assert bool(weights(coders[1]).isfinite().all())


def huge_atoms(coder, recipe):
    coder.generator.weight.data.mul_(1e5)
    return replace(recipe, n_steps=1), r"the reconstruction error per feature reached \d"


def endless_rate(coder, recipe):
    """The loss of its one step is still finite."""
    groups = {**recipe.groups, "generator": replace(recipe.groups["generator"], rate=Constant(float("inf")))}
    return replace(recipe, n_steps=1, groups=groups), "the parameter generator.weight is not finite"


@pytest.mark.parametrize("spoil", [huge_atoms, endless_rate])
@pytest.mark.parametrize("engine", [train_fused, train_in_turn])
def test_both_engines_judge_divergence_alike(engine, spoil):
    coder, recipe = built(*CASES[0])
    recipe, words = spoil(coder, recipe)
    (end,) = train_replicas([coder], ROWS, recipe, seeds=[0], device=DEVICE, engine=engine)
    assert end.step == 1
    assert re.search(words, end.cause)


def test_fista_dictionaries_equal_plain_training():
    """Both solve each step to a gap of 1e-4."""
    coders = []
    for seed in (0, 1):
        coder, recipe = build_published(PUBLISHED["fista"], ODD, seed=seed)
        coder.penalty.fill_(1.0)
        coder.tolerance = 1e-4
        coders.append(coder)
    plain = [copy.deepcopy(coder) for coder in coders]
    train_replicas(coders, ROWS, recipe, seeds=[0, 1], device=DEVICE, engine=train_fused)
    train_replicas(plain, ROWS, recipe, seeds=[0, 1], engine=train_in_turn)
    for one, other in zip(coders, plain, strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=1e-2)


def test_fista_steps_are_no_longer_than_the_dictionary_allows(monkeypatch):
    """1/L with L at least the largest eigenvalue of AᵀA, from the first step on, and at most 5 % above; and every code
    reaches its gap."""
    seen, own = [], fused_fista.fista_codes

    def watched(gram, correlations, energies, codes, points, gaps, bounds, *given, **named):
        own(gram, correlations, energies, codes, points, gaps, bounds, *given, **named)
        seen.append((bounds / torch.linalg.eigvalsh(gram)[:, -1], gaps.max()))

    monkeypatch.setattr(fused_fista, "fista_codes", watched)
    study = replace(ODD, n_steps=8)
    built = [build_published(PUBLISHED["fista"], study, seed=seed) for seed in range(4)]
    for coder, _ in built:
        coder.penalty.fill_(1.0)
    coders = [coder for coder, _ in built]
    train_replicas(coders, ROWS, built[0].recipe, seeds=range(4), device=DEVICE, engine=train_fused)
    ratios = torch.stack([ratio for ratio, _ in seen])
    assert ratios.shape == (8, 4)
    assert 1 <= float(ratios.min()) <= float(ratios.max()) <= 1.0501
    assert float(torch.stack([gap for _, gap in seen]).max()) <= coders[0].tolerance


def different_atoms():
    wide = Study(n_features=11, n_components=20, n_steps=3, batch_size=9, widths=(21, 17))
    return [built("gaussian", SCRIPTS, 1, 0).coder, built("gaussian", SCRIPTS, 1, 0, wide).coder]


def changed(**parts):
    coder = built("thresholded-laplacian", SCRIPTS, 2, 0).coder
    for name, part in parts.items():
        setattr(coder, name, part)
    return [coder]


class Bent(LaplacePosterior):
    """One that could compute anything."""


def frozen():
    coders = changed()
    coders[0].encoder.layers[0].bias.requires_grad_(False)
    return coders


REFUSED = {
    "an autoencoder": (lambda: [build(METHODS["topk"], Plan(11, 19, 0.1, 3, 9), 0).coder], "TopKAutoencoder"),
    "another encoder": (lambda: changed(encoder=LinearEncoder(11)), "MLPEncoder, not a LinearEncoder"),
    "another objective": (lambda: changed(objective=MeanOf(3)), r"BestOf\(J\), not MeanOf"),
    "other sizes": (different_atoms, "coder 1 has"),
    "a prior of another family": (
        lambda: changed(prior=NormalPrior(0.1)), "LaplacePosterior with a LaplacePrior, not a NormalPrior",
    ),
    "a posterior derived from a known one": (lambda: changed(posterior=Bent(17, 19)), "not a Bent"),
    "a level derived from a known one": (
        lambda: changed(threshold=Threshold(ShiftedSoft, TrackedLevel(0.25, 3.0))), "not a TrackedLevel",
    ),
    "a frozen parameter": (frozen, "all of whose parameters are learned"),
    "double precision": (lambda: [coder.double() for coder in changed()], "in float32"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_kernel_is_refused_in_words(name):
    coders, message = REFUSED[name]
    recipe = built(*CASES[0]).recipe
    given = coders()
    with pytest.raises(NotFused, match=message):
        train_replicas(given, ROWS, recipe, seeds=[0] * len(given), engine=train_fused)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (build(METHODS["gaussian"], Plan(11, 19, 0.1, 3, 9), 0).recipe, "SGD, not Adam"),
        (replace(built(*CASES[0]).recipe, augment=Mirrored(ImageShape(3, 1))), "rows as they are, not Mirrored"),
    ],
)
def test_another_recipe_is_refused_in_words(recipe, message):
    with pytest.raises(NotFused, match=message):
        train_replicas([built(*CASES[0]).coder], ROWS, recipe, seeds=[0], engine=train_fused)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="no CUDA device")
def test_many_components_stay_within_memory():
    """B = 4096, d = 65,536, J = 20 in under 12 GiB: J×B×d alone would be 20."""
    study = Study(n_components=65_536, n_steps=4, batch_size=4096)
    coder, recipe = built("thresholded-laplacian", SCRIPTS, 20, 0, study)
    torch.cuda.reset_peak_memory_stats()
    rows = TensorRows(torch.randn(8192, 256))
    assert train_replicas([coder], rows, recipe, seeds=[0], device="cuda", engine=train_fused) == [None]
    assert torch.cuda.max_memory_allocated() < 12 * 2**30
