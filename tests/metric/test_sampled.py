"""Errors of draws, attributes told by components, traversals."""

import numpy as np
import pytest
import torch
from scipy.stats import pointbiserialr
from torch.distributions import Normal, kl_divergence

from softspike.data import Labels, TensorRows
from softspike.encoder import LinearEncoder
from softspike.generator import ConvGenerator, Dictionary
from softspike.metric import estimated_dictionary
from softspike.metric.attributes import attribute_correlations, best_components, chance_correlation, traversal
from softspike.metric.sampled import draws, sampled_errors
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import GaussianPosterior
from softspike.prior import NormalPrior
from softspike.threshold import FixedLevel, ShiftedSoft, Threshold


def coder():
    torch.manual_seed(0)
    return VariationalCoder(
        LinearEncoder(6), GaussianPosterior(6, 8), NormalPrior(0.1), Dictionary(6, 8), BestOf(5),
        Threshold(ShiftedSoft, FixedLevel(0.3)),
    )  # fmt: skip


def test_draws_are_the_best_of_j(monkeypatch):
    model, x = coder(), torch.randn(50, 6)
    monkeypatch.setattr("softspike.metric.sampled._NUMBERS", 7 * 5 * 8)  # seven rows at a time
    parts = list(draws(model, TensorRows(x), 5, seed=2))
    assert [len(part.x) for part in parts] == [7] * 7 + [1]
    joined = [torch.cat(field) for field in zip(*parts, strict=True)]
    rows, codes, reconstruction, best, one, kl = joined
    torch.testing.assert_close(rows, x)
    torch.testing.assert_close(reconstruction, model.generator(codes), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(best, (x - reconstruction).square().mean(1), rtol=1e-5, atol=1e-6)
    assert bool((best <= one).all())
    law = model.law(x).base
    torch.testing.assert_close(kl, kl_divergence(Normal(law.loc, law.scale), model.prior.law), rtol=1e-4, atol=1e-5)
    found = sampled_errors(model, TensorRows(x), 5, seed=2)
    assert found.best == pytest.approx(float(best.mean()), rel=1e-5)
    assert found.one == pytest.approx(float(one.mean()), rel=1e-5)
    assert found.active == pytest.approx(float((codes != 0).sum(1).float().mean()))


def test_more_draws_find_better_ones():
    model, rows = coder(), TensorRows(torch.randn(200, 6))
    errors = [sampled_errors(model, rows, n).best for n in (1, 4, 16)]
    assert errors[0] > errors[1] > errors[2]


def test_attributes_and_the_components_that_tell_them():
    random = np.random.default_rng(0)
    truth = random.random((300, 3)) < [0.2, 0.5, 0.7]
    codes = random.standard_normal((300, 5)) * (random.random((300, 5)) < 0.6)
    codes[:, 4] -= 2.0 * truth[:, 1]
    codes[:, 2] = 0.0
    found = attribute_correlations(Labels(("a", "b", "c"), truth), torch.from_numpy(codes))
    assert found.shape == (3, 5)
    for attribute in range(3):
        for component in (0, 1, 3, 4):
            wanted = pointbiserialr(truth[:, attribute], codes[:, component]).statistic
            assert float(found[attribute, component]) == pytest.approx(wanted, abs=1e-9)
    assert found[:, 2].tolist() == [0, 0, 0]
    best = best_components(found)
    assert int(best.component[1]) == 4
    assert float(best.correlation[1]) < -0.5


def test_a_traversal_moves_one_component():
    torch.manual_seed(0)
    generator, code = ConvGenerator((8, 8), 6).eval(), torch.randn(6)
    values = torch.tensor([-1.0, 0.0, float(code[2]), 1.0])
    images = traversal(generator, code, 2, values)
    assert images.shape == (4, 64)
    torch.testing.assert_close(images[2], generator(code[None])[0], rtol=1e-5, atol=1e-6)
    assert float((images[0] - images[3]).abs().max()) > 1e-4
    assert float(code[2]) == float(values[2])  # the code itself is left alone


def test_the_dictionary_of_a_linear_generator_is_found_from_its_codes():
    model, codes = Dictionary(6, 8), torch.randn(100, 8)
    torch.testing.assert_close(
        estimated_dictionary(model(codes).detach(), codes).atoms, model.atoms.detach(), atol=1e-4, rtol=1e-3
    )


def test_chance_is_what_components_that_know_nothing_reach():
    """400 attributes of noise, 40 components, 500 rows: |r| of the best exceeds the 10 % level in 10 % ± 4 %."""
    random = np.random.default_rng(0)
    labels = Labels(tuple(map(str, range(400))), random.random((500, 400)) < 0.4)
    codes = torch.from_numpy(random.standard_normal((500, 40)))
    found = best_components(attribute_correlations(labels, codes)).correlation.abs()
    above = float((found > chance_correlation(500, 40, risk=0.1)).double().mean())
    assert above == pytest.approx(0.1, abs=0.04)
