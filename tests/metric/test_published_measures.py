"""The paper's other measures, and the right ones beside them, on cases with known answers."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jaccard
from scipy.stats import pointbiserialr
from torch.distributions import Normal

from softspike.data import TensorRows, synthetic
from softspike.methods.published import PUBLISHED, Study, build_published
from softspike.metric import (
    active_count,
    estimated_dictionary,
    feature_collapse,
    gradient_snr,
    jaccard_index,
    matched_solvers,
    mean_bound,
    never_active,
    point_biserial,
    posterior_collapse,
    published_jaccard_distance,
    published_loss,
    published_point_biserial,
    snr_floor,
    used_components,
)
from softspike.metric.matched import lasso_at_mean_count
from softspike.objective import BestOf

SMALL = Study(n_features=16, n_components=12, n_steps=60, batch_size=20, widths=(24, 20))


# ── loss ──


def test_coding_nothing_costs_half_the_features_on_standardised_data():
    x = torch.randn(4000, 256)
    x = (x - x.mean(0)) / x.std(0, correction=0)
    nothing = published_loss(x, torch.zeros(256, 10), torch.zeros(4000, 10))
    assert nothing.total == nothing.zero == pytest.approx(128, rel=1e-5)


def test_the_loss_adds_up():
    x, atoms, codes = torch.randn(50, 6), torch.randn(6, 4), torch.randn(50, 4)
    loss = published_loss(x, atoms, codes)
    expected = 0.5 * (x - codes @ atoms.T).norm(dim=1) ** 2 + 20 * codes.abs().sum(1) + 1e-3 * atoms.norm() ** 2
    assert loss.total == pytest.approx(float(expected.mean()), rel=1e-5)
    assert loss.codes == pytest.approx(loss.total - 1e-3 * float(atoms.norm() ** 2), rel=1e-5)


def test_the_loss_depends_on_the_scale_of_the_atoms():
    x, atoms, codes = torch.randn(50, 6), torch.randn(6, 4), torch.randn(50, 4)
    one, other = published_loss(x, atoms, codes), published_loss(x, 2 * atoms, codes / 2)
    assert other.misfit == pytest.approx(one.misfit, rel=1e-5)
    assert other.magnitude == pytest.approx(one.magnitude / 2, rel=1e-5)


# ── supports ──


def test_identical_supports_score_one_and_disjoint_ones_none():
    z = torch.randn(1, 3, 8).expand(5, 3, 8) * torch.randn(5, 3, 1)
    assert jaccard_index(z).tolist() == [1.0, 1.0, 1.0]
    assert published_jaccard_distance(z).tolist() == [0.0, 0.0, 0.0]
    disjoint = torch.eye(4)[:, None, :]
    assert jaccard_index(disjoint).tolist() == [0.0]
    assert jaccard_index(torch.zeros(4, 2, 8)).tolist() == [1.0, 1.0]  # two empty supports agree
    with pytest.raises(ValueError, match="1 draws were given"):
        jaccard_index(disjoint[:1])


def test_the_index_is_one_minus_scipys_distance_over_pairs():
    z = torch.randn(6, 4, 10) * (torch.rand(6, 4, 10) < 0.3)
    for b in range(4):
        support = (z[:, b] != 0).numpy()
        distance = [[jaccard(one, other) for one in support] for other in support]
        off = [distance[m][n] for m in range(6) for n in range(6) if m != n]
        assert float(jaccard_index(z)[b]) == pytest.approx(1 - np.mean(off), abs=1e-6)
        assert float(published_jaccard_distance(z)[b]) == pytest.approx(np.mean(distance), abs=1e-6)


def test_used_components_have_a_norm():
    atoms = torch.tensor([[1.0, 0.3, 0.32], [0.0, 0.0, 0.0]])
    assert used_components(atoms).tolist() == [True, False, True]  # ‖a‖² = 1, 0.09, 0.1024


# ── point-biserial ──


def test_point_biserial_equals_scipys():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((200, 5)) + rng.integers(0, 2, (200, 1))
    attribute = (values[:, 2] + rng.standard_normal(200) > 0.5).astype(int)
    found = point_biserial(torch.from_numpy(attribute), torch.from_numpy(values))
    expected = [pointbiserialr(attribute, column).statistic for column in values.T]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    published = published_point_biserial(torch.from_numpy(attribute), torch.from_numpy(values))
    np.testing.assert_allclose(published, np.array(expected) * math.sqrt(200), atol=1e-10)


def test_point_biserial_of_what_never_varies_is_none():
    values = torch.stack([torch.zeros(10), torch.arange(10.0)], dim=1)
    assert point_biserial(torch.arange(10) > 4, values)[0] == 0
    assert point_biserial(torch.ones(10), values).tolist() == [0, 0]


# ── gradients ──


def test_gradient_snr_equals_that_of_the_stored_gradients():
    weights = [torch.randn(3, 2, requires_grad=True), torch.randn(4, requires_grad=True)]
    unused = torch.randn(2, requires_grad=True)

    def loss(number):
        e = torch.randn(3, 2, generator=torch.Generator().manual_seed(number))
        return ((weights[0] * (1 + e)).square().sum() + (weights[1] * e.sum()).sum()) + 3 * weights[1].sum()

    stored = [torch.autograd.grad(loss(number), weights) for number in range(50)]
    ratios = [torch.stack(g).double() for g in zip(*stored, strict=True)]
    groups = {"one": weights[:1], "two": weights[1:], "three": [unused]}
    for n_parts in (1, 5):
        passes = [g.unflatten(0, (-1, n_parts)).mean(1) for g in ratios]
        expected = [float((g.mean(0).abs() / (g.std(0) + 1e-9)).mean()) for g in passes]
        found = gradient_snr(loss, groups, n_passes=50 // n_parts, n_parts=n_parts)
        assert [found["one"], found["two"]] == pytest.approx(expected, rel=1e-5)
        assert found["three"] == 0


def test_the_floor_is_what_pure_noise_scores():
    w = torch.zeros(20_000, requires_grad=True)

    def loss(number):
        return (w * torch.randn(20_000, generator=torch.Generator().manual_seed(number))).sum()

    assert gradient_snr(loss, {"w": [w]}, n_passes=100)["w"] == pytest.approx(snr_floor(100), rel=0.02)


# ── collapse ──


def test_collapse_counts_components():
    kl = torch.full((100, 4), 0.5)
    kl[:, 0] = 0.001  # always at the prior
    kl[:95, 1] = 0.01  # at it on exactly 95 %
    kl[:94, 2] = 0.001
    assert posterior_collapse(kl) == 0.5
    codes = torch.zeros(100, 4)
    codes[0, 1] = 5.0  # rare, but alive
    codes[:6, 2] = 0.02
    codes[:, 3] = 0.005  # always there, always tiny
    assert feature_collapse(codes) == 0.75
    assert never_active(codes) == 0.25


# ── dictionary ──


@pytest.mark.parametrize("intercept", [True, False])
def test_a_linear_generator_is_its_own_estimated_dictionary(intercept):
    atoms, codes = torch.randn(7, 5), torch.randn(300, 5) + 1
    offset = torch.randn(7) if intercept else torch.zeros(7)
    found = estimated_dictionary(codes @ atoms.T + offset, codes, intercept)
    torch.testing.assert_close(found.atoms, atoms, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.offset, offset, atol=1e-4, rtol=1e-4)


def test_without_intercept_it_is_the_pseudo_inverse():
    x, codes = torch.randn(40, 7).double(), torch.randn(40, 6).double()
    codes[:, 5] = 0  # never active: its atom is 0, the shortest of the equally good ones
    found = estimated_dictionary(x, codes, intercept=False)
    torch.testing.assert_close(found.atoms, (torch.linalg.pinv(codes) @ x).T)
    assert found.atoms[:, 5].abs().max() == 0


# ── bound and solvers ──


@pytest.mark.parametrize("rows_at_a_time", [7, 500, 10_000])
def test_the_mean_bound_is_exact_where_the_posterior_is(monkeypatch, rows_at_a_time):
    """With A = 0 the posterior is the prior: a head that says so makes every weight p(x|0), and the bound exact."""
    monkeypatch.setattr("softspike.metric.bound._WEIGHED_NUMBERS", rows_at_a_time * 200 * 12)
    coder = build_published(PUBLISHED["gaussian"], SMALL, objective=BestOf(1)).coder
    with torch.no_grad():
        coder.generator.weight.zero_()
        for head in (coder.posterior.location, coder.posterior.log_variance):
            head.weight.zero_()
            head.bias.zero_()
        coder.posterior.log_variance.bias.fill_(math.log(0.1))
    x = torch.randn(500, 16)
    exact = Normal(0.0, math.sqrt(1e-2 * 16 / 2)).log_prob(x).sum(-1).mean()
    assert mean_bound(coder, TensorRows(x), n_samples=200) == pytest.approx(float(exact), rel=1e-5)


def test_the_mean_bound_is_the_mean_of_the_models_own_and_tightens_with_samples():
    coder = build_published(PUBLISHED["thresholded-laplacian"], SMALL, objective=BestOf(1)).coder
    rows = TensorRows(torch.randn(400, 16))
    few, many = (mean_bound(coder, rows, n_samples=n, seed=5) for n in (1, 200))
    assert few < many
    with torch.no_grad():
        direct = coder.bound(rows.tensor, 200, torch.Generator().manual_seed(5)).mean()
    assert many == pytest.approx(float(direct), rel=1e-5)


def test_solvers_on_an_orthonormal_dictionary_keep_the_largest_coefficients():
    atoms = torch.linalg.qr(torch.randn(16, 16)).Q
    x = torch.randn(1500, 16) * torch.rand(16).mul(3)
    found = matched_solvers(atoms, x, mean_active=4)
    energy = (x @ atoms).square().flatten().sort(descending=True).values
    # One global tolerance on what is left of each row is not the same as the largest coefficients of all rows.
    assert 0.9 * float(energy[:6000].sum() / energy.sum()) < found.omp <= float(energy[:6000].sum() / energy.sum())
    assert found.fista < found.omp
    assert found.fista_active == pytest.approx(4, abs=0.01)
    assert found.omp_active == pytest.approx(4, abs=0.01)
    assert found.n_samples == 1500


def test_the_lasso_meets_a_count_on_atoms_that_repeat_one_another():
    """Pairs of atoms with a cosine of .995, between which a solution to a gap may share a coefficient or not."""
    random = torch.Generator().manual_seed(0)
    atoms = torch.randn(32, 32, generator=random).repeat(1, 2) + 0.1 * torch.randn(32, 64, generator=random)
    x = synthetic(600, 32, 64, 4, seed=1, positive=False).x
    assert active_count(lasso_at_mean_count(x, atoms, 6.0)) == pytest.approx(6.0, rel=0.01)
