"""SparseCoder meets the sparsity it was asked for, and learns from a stream as it does from the whole."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from small import quick, same_bits, small_data

from softspike import SparseCoder
from softspike.data import photograph_patches
from softspike.methods import METHODS

X, UNSEEN = small_data(), small_data(4000, seed=1)
DENSE = {"gaussian", "laplacian"}  # their codes have no zeros, so they have no sparsity to honour


@pytest.fixture(scope="module")
def coder():
    return quick().fit(X)


# ── sparsity ──


@pytest.mark.parametrize("target", [{"sparsity": 0.05}, {"sparsity": 0.1}, {"sparsity": 0.3}, {"n_active": 5}])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in DENSE])
@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_sparsity_is_honoured_on_unseen_data(method, target):
    settings = {"n_components": 40, "max_steps": 40, "batch_size": 64, "n_samples": 2, "random_state": 0}
    x = small_data(3000, n_features=20)
    coder = SparseCoder(method=method, **settings, **target).fit(x[:2000])
    measured = coder.transform(x[2000:]).nnz / 1000
    asked = target.get("n_active", 40 * target.get("sparsity", 0))
    assert coder.target_active_ == pytest.approx(asked)
    assert measured == pytest.approx(asked, rel=0.1)


# ── streams ──


def saved(coder, folder):
    coder.save(folder)
    return SparseCoder.load(folder)


def pickled(coder, folder):
    return pickle.loads(pickle.dumps(coder))


def streamed(coder, x, batch_size):
    for first in range(0, len(x), batch_size):
        coder.partial_fit(x[first : first + batch_size])
    return coder


@pytest.mark.parametrize("method", [SparseCoder().method, "fista"])
@pytest.mark.usefixtures("no_simulation")
def test_a_stream_ends_where_fit_does(method):
    """At equal steps and batch size, within 2 % of the explained variance on unseen patches."""
    train, unseen = photograph_patches(300 * 128, 2000, size=8)
    coder = SparseCoder(64, sparsity=0.1, method=method, max_steps=300, batch_size=128, random_state=0)
    fitted, stream = clone(coder).fit(train), streamed(coder, train, 128)
    assert stream.n_steps_ == fitted.n_steps_ == 300
    assert stream.n_samples_seen_ == fitted.n_samples_seen_ == len(train)
    assert stream.score(unseen) == pytest.approx(fitted.score(unseen), rel=0.02)
    assert stream.transform(unseen).nnz == pytest.approx(fitted.transform(unseen).nnz, rel=0.1)
    refitted = method == "hard-gaussian"  # whose origin is then not quite the mean
    np.testing.assert_allclose(stream.mean_, fitted.mean_, atol=0.03 if refitted else 1e-5)


def test_one_call_of_partial_fit_takes_a_step_per_batch():
    one, many = quick(max_steps=8).partial_fit(X), streamed(quick(max_steps=8), X, 32)
    assert one.n_steps_ == many.n_steps_ == 8
    assert same_bits(one.model_tensors(), many.model_tensors())


def test_fit_forgets_what_was_there_before(coder):
    again = quick().partial_fit(X[:64]).fit(UNSEEN).fit(X)
    assert same_bits(again.model_tensors(), coder.model_tensors())


@pytest.mark.parametrize("fetch", [lambda coder, folder: coder, saved, pickled])
def test_partial_fit_goes_on_from_a_fit(tmp_path, fetch):
    """Mean and scale of old and new rows together; a warning that the schedule is over."""
    begun = fetch(quick(max_steps=5, dictionary_refits=0).fit(X), tmp_path)
    with pytest.warns(UserWarning, match="all 5 steps of the learning-rate schedule are done") as caught:
        begun.partial_fit(UNSEEN[:32])
    assert caught[0].filename == __file__  # the caller's line, past the decorator
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begun.partial_fit(UNSEEN[32:64])
    seen = np.concatenate([X, UNSEEN[:64]])
    assert (begun.n_steps_, begun.n_samples_seen_) == (7, len(seen))
    np.testing.assert_allclose(begun.mean_, seen.mean(0), rtol=1e-5)
    assert float(begun.standardiser_.scale) == pytest.approx(np.sqrt(seen.var(0).mean()), rel=1e-5)


def test_a_stream_can_be_saved_and_gone_on_with(tmp_path):
    stream = quick(max_steps=50).partial_fit(X)
    stream.save(tmp_path)
    again = SparseCoder.load(tmp_path)
    assert again.n_steps_ == stream.n_steps_ == 8
    again.partial_fit(X)
    assert again.n_steps_ == 16
    assert again.score(X) > stream.score(X) - 0.05


def test_partial_fit_takes_a_single_row_and_refuses_another_width():
    coder = quick(max_steps=50).partial_fit(X[:1]).partial_fit(X[1:2])
    assert coder.n_steps_ == 2
    with pytest.raises(ValueError, match="12 features"):
        coder.partial_fit(X[:, :5])


def test_a_count_that_is_set_on_a_few_rows_is_told():
    stream = quick(max_steps=20).partial_fit(X[:1])
    with pytest.warns(UserWarning, match="set on 1 row, all that was learned from; it means little before 50"):
        stream.transform(X)
    stream.partial_fit(X[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.transform(X)


@pytest.mark.parametrize("factor", [10, 1000])
@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_one_outlier_does_not_move_the_count(factor):
    """A row that is far from all others: the count of usual rows stays within 5 % of its target (3,000 of them)."""
    noise = np.random.default_rng(3)
    rows, others = noise.standard_normal((2, 3000, 16), dtype=np.float32)
    rows[7] *= factor
    coder = SparseCoder(32, n_active=4, max_steps=150, random_state=0, verbose=False).fit(rows)
    assert coder.transform(others).nnz / len(others) == pytest.approx(4, rel=0.05)
