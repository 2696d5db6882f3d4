"""The compiled best of J equals the plain one on the same random numbers, and what it draws follows its law."""

import os
import subprocess
import sys

import pytest
import torch
from scipy import stats
from small import same_bits

pytest.importorskip("numba", reason="compiled code needs numba")

from softspike.data import TensorRows
from softspike.encoder import LinearEncoder
from softspike.generator import Dictionary, Generator
from softspike.kernels.counter import BASE, laplace_noise, normal_noise, philox, standard_gamma, unit
from softspike.kernels.cpu import threads
from softspike.kernels.cpu.winner import winner_of
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.model import VariationalCoder
from softspike.objective import BestOf, compiled
from softspike.objective.compiled import best_noise, best_terms, finds, takes
from softspike.objective.evidence import Noise
from softspike.posterior import GaussianPosterior, LaplacePosterior
from softspike.prior import LaplacePrior, NormalPrior
from softspike.threshold import (
    CentredSoft,
    DoubledStraightThrough,
    FixedLevel,
    GammaLevel,
    ShiftedSoft,
    StraightThrough,
    Subgradient,
    Threshold,
)
from softspike.train import train
from softspike.train.interrupt import Interrupted
from softspike.train.state import pack

HEADS = {"laplace": (LaplacePosterior, LaplacePrior, 1.5), "gaussian": (GaussianPosterior, NormalPrior, 1.2)}
GRADIENTS = [StraightThrough(), DoubledStraightThrough(), Subgradient()]
SHAPES = [(100, 256, 256), (7, 5, 13), (1, 1, 1), (3, 70, 9), (33, 16, 300)]  # batch, features, components


def build(base: str, n_features: int, n_components: int, gradient=GRADIENTS[0]) -> VariationalCoder:
    torch.manual_seed(n_components)
    head, prior, level = HEADS[base]
    return VariationalCoder(
        LinearEncoder(n_features), head(n_features, n_components), prior(), Dictionary(n_features, n_components),
        BestOf(20), Threshold(ShiftedSoft, FixedLevel(level), gradient), beta=0.1,
    )  # fmt: skip


def noise_of(key: int, n_samples: int, shape: tuple[int, int], laplace: bool) -> Noise:
    """The noise of samples 0 … J − 1 by the plain counter."""
    element = torch.arange(shape[0] * shape[1]).reshape(shape)
    drawn = []
    for group in range(-(-n_samples // 4)):
        a, b, c, d = (unit(word) for word in philox(key, element, group, 0, BASE))
        drawn += [laplace_noise(u) for u in (a, b, c, d)] if laplace else [*normal_noise(a, b), *normal_noise(c, d)]
    return Noise(torch.stack(drawn[:n_samples]), None)


def key_of(seed: int) -> int:
    """The key that the compiled search takes from a step's random numbers."""
    return int(torch.randint(2**62, (), generator=torch.Generator().manual_seed(seed)))


@pytest.mark.parametrize("n_samples", [1, 2, 5, 20])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda gradient: type(gradient).__name__)
@pytest.mark.parametrize("base", HEADS)
def test_equals_the_plain_search_and_its_gradients(base, gradient, shape, n_samples):
    """Loss, its parts and every gradient within 1e-4, relative and absolute: sums are taken in another order."""
    batch, n_features, n_components = shape
    coder, x = build(base, n_features, n_components, gradient), torch.randn(batch, n_features)
    found = {}
    for way in ("compiled", "plain"):
        coder.zero_grad()
        evidence = coder.evidence(x, step=0)
        if way == "compiled":
            terms = best_terms(evidence, n_samples, torch.Generator().manual_seed(3))
        else:
            noise = noise_of(key_of(3), n_samples, (batch, n_components), base == "laplace")
            winner = evidence.misfit(evidence.values(noise)).argmin(0)
            terms = BestOf.terms(evidence, noise.pick(winner))
        (terms.loss * torch.arange(1, batch + 1)).mean().backward()
        found[way] = (terms[:4], {name: p.grad.clone() for name, p in coder.named_parameters()})
    for fast, plain in zip(found["compiled"][0], found["plain"][0], strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-4)
    for name, plain in found["plain"][1].items():
        scale = float(plain.abs().max())
        torch.testing.assert_close(found["compiled"][1][name], plain, rtol=1e-4, atol=1e-4 * max(scale, 1e-3))


@pytest.mark.parametrize("n_samples", [1, 2, 5, 20])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("alpha", [0.4, 3.0])
@pytest.mark.parametrize("base", HEADS)
def test_levels_with_a_law_equal_the_plain_search(base, alpha, shape, n_samples):
    """The noise of the winner and of its levels within 1e-3 of the plain counter's, for shapes around α."""
    batch, n_features, n_components = shape
    coder, x = build(base, n_features, n_components), torch.randn(batch, n_features)
    coder.threshold = Threshold(ShiftedSoft, GammaLevel(n_features, n_components, 0.8 * HEADS[base][2], shape=alpha))
    evidence = coder.evidence(x, step=0)
    found = best_noise(evidence, n_samples, torch.Generator().manual_seed(3))
    base_noise = noise_of(key_of(3), n_samples, (batch, n_components), base == "laplace").base
    element = torch.arange(batch * n_components).reshape(batch, n_components)
    drawn = [
        standard_gamma(key_of(3), evidence.level.concentration.detach(), element, group, 0)
        for group in range(-(-n_samples // 4))
    ]
    levels = torch.stack([g for four in drawn for g in four][:n_samples]).clamp_min(torch.finfo(torch.float32).tiny)
    noise = Noise(base_noise, levels)
    with torch.no_grad():
        winner = evidence.misfit(evidence.values(noise)).argmin(0)
    for fast, plain in zip(found, noise.pick(winner), strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("base", HEADS)
def test_draws_follow_their_law(base):
    """One sample: 160,000 values against the law's own distribution, zeros counted within five standard errors."""
    n, d, laplace = 400, 400, base == "laplace"
    location, scale, level = 0.3, 0.5, 0.6
    full = torch.full((n, d), 1.0)
    best = winner_of(
        torch.zeros(n, 2), location * full, scale * full, full, torch.tensor(level), torch.tensor(1.0),
        torch.zeros(2, d), 1, 77, laplace,
    )  # fmt: skip
    noise = (stats.laplace if laplace else stats.norm)()
    assert stats.kstest(best.noise.flatten().double().numpy(), noise.cdf).pvalue > 1e-3
    gamma = 2 * noise.sf(level / scale)
    active = best.codes[best.codes != 0].double().numpy()
    assert abs(active.size / (n * d) - gamma) < 5 * (gamma * (1 - gamma) / (n * d)) ** 0.5

    def cdf(z):  # of z given that it is not 0: the noise's tails, moved inwards by the level
        below = noise.cdf((z - location - level) / scale) * (z < location)
        above = (1 - noise.sf((z - location + level) / scale) - 1 + gamma) * (z >= location)
        return (below + above) / gamma

    assert stats.kstest(active, cdf).pvalue > 1e-3


def test_samples_are_independent():
    """Neighbouring samples, rows and components of the noise: |correlation| < 4/√N."""

    def drawn(key):  # with x = A = 0 all samples are equal, and the first wins
        flat, number = torch.ones(500, 200), torch.tensor(1.0)
        return winner_of(torch.zeros(500, 2), flat, flat, flat, number, number, torch.zeros(2, 200), 3, key, True).noise

    one, other = drawn(1), drawn(2)
    for a, b in ((one, other), (one[1:], one[:-1]), (one[:, 1:], one[:, :-1])):
        assert abs(float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])) < 4 / a.numel() ** 0.5


def test_threads_do_not_change_a_bit():
    coder, x = build("laplace", 16, 48), torch.randn(31, 16)
    before, results = torch.get_num_threads(), []
    try:
        for n_threads in (1, 2, 3):
            torch.set_num_threads(n_threads)
            results.append(best_terms(coder.evidence(x, 0), 9, torch.Generator().manual_seed(1)).misfit.detach())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(result, results[0]) for result in results)


def test_without_torchs_threads_one_does_it(monkeypatch):
    """Where the OpenMP runtime of torch cannot be reached."""
    coder, x = build("laplace", 16, 48), torch.randn(31, 16)
    usual = best_terms(coder.evidence(x, 0), 9, torch.Generator().manual_seed(1))
    monkeypatch.setattr(threads, "_FORK", None)
    alone = best_terms(coder.evidence(x, 0), 9, torch.Generator().manual_seed(1))
    assert torch.equal(alone.loss, usual.loss)


def test_numbers_that_are_none_reach_the_loss():
    """A location that is not a number must end training, not hide behind a comparison."""
    coder, x = build("laplace", 16, 48), torch.randn(3, 16)
    x[1] = float("nan")
    loss = best_terms(coder.evidence(x, 0), 9, torch.Generator().manual_seed(1)).loss
    assert loss.isnan().tolist() == [False, True, False]


class Curved(Generator):
    n_features, n_components = 16, 64

    def forward(self, z):
        return z[..., :16].tanh()


def _changed(**parts):
    coder = build("laplace", 16, 64)
    for name, part in parts.items():
        setattr(coder, name, part)
    return coder


LARGE = 300  # rows: 4 · 300 · 64 numbers are enough
NOT_TAKEN = {
    "no threshold": (lambda: _changed(threshold=None), LARGE),
    "another threshold": (lambda: _changed(threshold=Threshold(CentredSoft, FixedLevel(0.4))), LARGE),
    "a level with a law": (lambda: _changed(threshold=Threshold(CentredSoft, GammaLevel(16, 64, 0.4))), LARGE),
    "another generator": (lambda: _changed(generator=Curved()), LARGE),
    "double precision": (lambda: build("laplace", 16, 64).double(), LARGE),
    "a small batch": (lambda: build("laplace", 16, 64), 3),
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_other_models_go_the_plain_way(name):
    make, n_rows = NOT_TAKEN[name]
    coder = make()
    x = torch.randn(n_rows, 16, dtype=next(coder.parameters()).dtype)
    evidence = coder.evidence(x, 0)
    assert not takes(evidence, 4)
    assert not finds(evidence, 4)
    assert torch.isfinite(BestOf(4)(evidence, torch.Generator().manual_seed(0)).loss).all()


def test_without_numba_the_plain_way_is_taken(monkeypatch):
    evidence = build("laplace", 16, 64).evidence(torch.randn(LARGE, 16), 0)
    assert takes(evidence, 4)
    monkeypatch.setattr(compiled, "available", lambda: False)
    assert not takes(evidence, 4)


def test_training_resumed_is_the_same_bit_for_bit():
    """Random numbers depend on the seed and the step alone; and the loop does take the compiled way."""
    rows = TensorRows(torch.randn(300, 64, generator=torch.Generator().manual_seed(0)))
    study = Study(64, 64, n_steps=6, batch_size=100, widths=(32, 32))

    def state(stop):
        coder, recipe = build_published(PUBLISHED["thresholded-laplacian"], study, SCRIPTS, BestOf(12), seed=1)
        assert takes(coder.evidence(rows.take(torch.arange(100)), 0), 12)
        optimizer = recipe.build(coder.parameter_groups())
        if stop:
            with pytest.raises(Interrupted):
                train(coder, rows, recipe, seed=5, optimizer=optimizer, stop=lambda: True)
        train(coder, rows, recipe, seed=5, optimizer=optimizer, start=1 if stop else 0)
        return pack(coder, optimizer)

    assert same_bits(state(stop=False), state(stop=True))


FIRST_AND_NEXT = """
import hashlib, os, sys
import numba, torch  # the slow imports, once for both processes; what is compiled is imported by each

for _ in range(2):
    if os.fork():
        if os.wait()[1]:
            sys.exit("it failed")
        continue
    from softspike.kernels.cpu.winner import winner_of
    noise, level, prior = torch.Generator().manual_seed(0), torch.tensor([0.25]), torch.tensor([0.1])
    x, location, atoms = (torch.randn(64, 48, generator=noise) for _ in range(3))
    scale = torch.full((64, 64), 0.11)
    found = winner_of(x, location @ atoms.T, scale, scale, level, prior, atoms.T, 20, 5, True)
    print(hashlib.sha256(b"".join(part.numpy().tobytes() for part in found)).hexdigest(), flush=True)
    sys.exit()
"""


def test_the_process_that_compiles_rounds_like_the_next(tmp_path):
    """Machine code just made, and the same read from disk: all bits of the winners."""
    said = run_python(FIRST_AND_NEXT, NUMBA_CACHE_DIR=str(tmp_path)).split()
    assert list(tmp_path.rglob("*.nbc"))
    assert len(said) == 2
    assert len(said[0]) == 64
    assert said[0] == said[1]


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
