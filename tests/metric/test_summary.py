"""A summary is the plain measures of all codes at once, however the rows are walked through."""

import pytest
import torch
from small import small_data

from softspike.data import ArrayRows, TensorRows, synthetic
from softspike.data.chunks import chunks
from softspike.generator import Dictionary
from softspike.metric import (
    active_count,
    baselines,
    dead_components,
    explained_variance,
    pca_explained_variance,
    sparse_coding_loss,
    summarise,
    summary,
)
from softspike.solver import FistaCoder, omp


@pytest.fixture
def coder():
    return FistaCoder(Dictionary(12, 24, generator=torch.Generator().manual_seed(0)), penalty=0.3)


def test_summary_is_the_measures_of_all_codes(coder, monkeypatch):
    rows = ArrayRows(small_data(500) + 2)
    x = rows.take(torch.arange(500))
    z = coder.code(x)
    guess = coder.generator(z).detach()
    monkeypatch.setattr(summary, "chunks", lambda rows, size: chunks(rows, 130))
    found = summarise(coder, rows)
    assert found.n_samples == 500
    assert found.n_components == 24
    assert found.explained_variance == pytest.approx(explained_variance(x, guess), abs=1e-5)
    # The codes are solved for to a gap, so that in chunks of another size a coefficient at the edge may turn.
    assert found.active == pytest.approx(active_count(z), abs=0.01)
    assert found.active_share == pytest.approx(found.active / 24)
    assert found.dead == dead_components(z)
    assert found.loss == pytest.approx(sparse_coding_loss(x, guess, z), rel=1e-5)
    assert found.loss_of_zero == pytest.approx(0.5 * float(x.square().sum(-1).mean()), rel=1e-5)


def test_a_single_row(coder):
    found = summarise(coder, TensorRows(torch.randn(1, 12)))
    assert found.n_samples == 1
    assert found.explained_variance in (0.0, 1.0)
    assert baselines(coder, torch.randn(1, 12), found.active).n_samples == 1


def test_baselines_on_the_true_dictionary():
    """Data of exactly three sources: OMP with three atoms finds most of it, three principal components do not."""
    sample = synthetic(800, 12, 24, 3, seed=0, positive=False)
    coder = FistaCoder(Dictionary(12, 24))
    coder.load_state_dict({**coder.state_dict(), "generator.weight": sample.dictionary})
    found = baselines(coder, sample.x, 3.0)
    assert found.n_samples == 800
    assert found.pca == pytest.approx(pca_explained_variance(sample.x, 3))
    fixed = omp(sample.x, sample.dictionary, n_active=3)
    assert found.omp >= explained_variance(sample.x, fixed @ sample.dictionary.T) - 0.02
    assert found.omp > found.pca + 0.2


def test_baselines_take_fewer_rows_where_pursuits_would_be_large(monkeypatch, coder):
    monkeypatch.setattr(summary, "_PURSUIT_NUMBERS", 12 * (12 + 12) * 50)
    assert baselines(coder, torch.randn(200, 12), 3.0).n_samples == 50
