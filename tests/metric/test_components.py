"""What each component does, against loops that say the same slowly."""

import numpy as np
import pytest
from scipy import sparse

from softspike.metric import components, firing_rate, mean_size, partners, strongest_inputs, value_histograms


@pytest.fixture
def dense():
    random = np.random.default_rng(0)
    codes = random.standard_normal((80, 9)) * (random.random((80, 9)) < 0.3)
    codes[:, 4] = 0  # dead
    codes[:, 6] = codes[:, 5] * 2  # always together
    return codes


def test_rates_and_sizes(dense):
    codes = sparse.csr_matrix(dense)
    np.testing.assert_allclose(firing_rate(codes), (dense != 0).mean(0))
    expected = [np.abs(column[column != 0]).mean() if column.any() else 0 for column in dense.T]
    np.testing.assert_allclose(mean_size(codes), expected)


@pytest.mark.parametrize("n_bins", [1, 2, 31])
def test_histograms_count_every_active_value(dense, n_bins):
    reach, counts = value_histograms(sparse.csr_matrix(dense), n_bins)
    assert counts.shape == (9, n_bins)
    for i, column in enumerate(dense.T):
        values = column[column != 0]
        assert reach[i] == (np.abs(values).max() if len(values) else 0)
        expected = np.histogram(values, n_bins, (-reach[i], reach[i]))[0] if len(values) else np.zeros(n_bins)
        assert np.abs(counts[i] - expected).sum() <= 2  # a value on an edge may round to the other side
        assert counts[i].sum() == len(values)


@pytest.mark.parametrize("pairs", [2**24, 18, 1])
def test_partners_are_the_excess_over_chance(dense, monkeypatch, pairs):
    """Whatever is held at a time."""
    monkeypatch.setattr(components, "_PAIRS", pairs)
    atom, share = partners(sparse.csr_matrix(dense), k=3)
    on = dense != 0
    for i in range(9):
        given = on[on[:, i]].mean(0) if on[:, i].any() else np.zeros(9)
        excess = given - on.mean(0)
        excess[i] = -1
        expected = [j for j in np.argsort(-excess, kind="stable")[:3] if excess[j] > 1e-9]
        found = [j for j in atom[i] if j >= 0]
        np.testing.assert_allclose(excess[found], excess[expected], atol=1e-6)  # counts are held in float32
        np.testing.assert_allclose(share[i][: len(found)], given[found], atol=1e-6)
    assert atom[5][0] == 6
    assert share[5][0] == pytest.approx(1)
    assert (atom[4] == -1).all()


def test_strongest_inputs(dense):
    found = strongest_inputs(sparse.csr_matrix(dense), k=50)
    for i, column in enumerate(dense.T):
        shown = [row for row in found[i] if row >= 0]
        assert len(shown) == min(np.count_nonzero(column), 50)
        assert list(np.abs(column[shown])) == sorted(np.abs(column[column != 0]), reverse=True)[:50]


def test_a_single_component():
    codes = sparse.csr_matrix(np.array([[1.0], [0.0], [-2.0]]))
    assert partners(codes, 4).atom.shape == (1, 0)
    assert strongest_inputs(codes, 2).tolist() == [[2, 0]]
