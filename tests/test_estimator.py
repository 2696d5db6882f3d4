"""SparseCoder: its codes, on every kind of input, and in scikit-learn's tools."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small import quick, same_bits, small_data

from softspike import SparseCoder
from softspike.methods import AUTOENCODERS, METHODS, POSITIVE_METHODS

X, UNSEEN = small_data(), small_data(4000, seed=1)


@pytest.fixture(scope="module")
def coder():
    return quick().fit(X)


def nearly_the_same(one, other):
    """Equal within rounding. A score that rounding moves across the cut may change its component: one in a thousand."""
    difference = np.abs((one - other).toarray())
    return (difference > 1e-3 * (1 + np.abs(other.toarray()))).mean() < 1e-3


# ── codes ──


def test_codes_are_csr_with_exact_zeros(coder):
    codes = coder.transform(UNSEEN)
    assert sparse.isspmatrix_csr(codes)
    assert codes.shape == (len(UNSEEN), 24)
    assert (codes.data != 0).all()
    assert 0 < codes.nnz < 0.3 * codes.shape[0] * codes.shape[1]


def test_transform_is_deterministic(coder):
    one = coder.transform(UNSEEN)
    torch.rand(3)
    other = coder.transform(UNSEEN)
    assert (one != other).nnz == 0
    assert one.data.tobytes() == other.data.tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_a_row_is_coded_alike_alone_and_among_others(method):
    fitted = quick(method=method, max_steps=5).fit(X)
    among, alone = fitted.transform(X[:5]), sparse.vstack([fitted.transform(X[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(among.toarray(), alone.toarray(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_of_the_data_is_kept(coder, dtype):
    codes = coder.transform(UNSEEN.astype(dtype))
    assert codes.dtype == dtype
    assert coder.inverse_transform(codes).dtype == dtype
    assert coder.activation_probability(UNSEEN.astype(dtype)).dtype == dtype
    assert nearly_the_same(codes, coder.transform(UNSEEN))


def test_inverse_transform_is_mean_plus_codes_times_components(coder):
    codes = coder.transform(UNSEEN)
    assert coder.components_.shape == (24, 12)
    np.testing.assert_allclose(coder.mean_, X.mean(0), rtol=0.1)  # but for what the last fit has moved it by
    expected = coder.mean_ + codes.toarray() @ coder.components_
    for given in (codes, codes.toarray(), torch.from_numpy(codes.toarray()), codes.toarray().tolist(), codes.tocsc()):
        np.testing.assert_allclose(coder.inverse_transform(given), expected, rtol=1e-4, atol=1e-5)


def test_inverse_transform_is_the_generator_in_the_units_of_the_data(coder):
    codes = coder.transform(UNSEEN).toarray()
    with torch.no_grad():
        expected = coder.standardiser_.inverse(coder.coder_.generator(torch.from_numpy(codes)))
    np.testing.assert_allclose(coder.inverse_transform(codes), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 23), (24,), (2, 3, 24)])
def test_codes_of_another_shape_are_refused(coder, shape):
    with pytest.raises(ValueError, match=r"codes have shape .*, expected \(n_samples, 24\); give what transform"):
        coder.inverse_transform(np.zeros(shape))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_sparse_codes_that_point_nowhere_are_refused(coder, form):
    """A row or a column that is not there, in a matrix that scipy was not let check."""
    codes = coder.transform(UNSEEN).asformat(form)
    codes.indices[0] = 10**6
    with pytest.raises(ValueError, match=r"the codes are no whole sparse matrix .*; give what transform returned"):
        coder.inverse_transform(codes)


def test_activation_probability_is_a_probability(coder):
    probability = coder.activation_probability(UNSEEN)
    assert probability.shape == (len(UNSEEN), 24)
    assert probability.min() >= 0
    assert probability.max() <= 1
    active = coder.transform(UNSEEN).toarray() != 0
    assert probability[active].mean() > 2 * probability[~active].mean()


def test_codes_with_their_standard_deviation(coder):
    codes, std = coder.transform(X, return_std=True)
    assert (codes != coder.transform(X)).nnz == 0
    assert std.shape == codes.shape
    assert (std >= 0).all()
    assert np.isfinite(std).all()
    with pytest.raises(NotImplementedError, match="without a posterior, so they have no standard deviation"):
        quick(method="fista", max_steps=2).fit(X).transform(X, return_std=True)


@pytest.mark.usefixtures("no_simulation")
@pytest.mark.parametrize("method", METHODS)
def test_positive_codes_where_the_method_can(method):
    parts = np.abs(X)
    if method not in POSITIVE_METHODS:
        with pytest.raises(ValueError, match=f"positive is True, but the codes of method '{method}' are signed; use"):
            quick(method=method, positive=True).fit(parts)
        return
    fitted = quick(method=method, positive=True).fit(parts)
    assert fitted.transform(parts).min() >= 0
    assert fitted.transform(parts).nnz > 0
    centre = parts.mean(0) if method in AUTOENCODERS else np.zeros(12)  # which is the bias of their decoder
    np.testing.assert_allclose(fitted.mean_, centre, rtol=1e-5)
    stream = quick(method=method, positive=True).partial_fit(parts)
    assert stream.transform(parts).min() >= 0
    np.testing.assert_allclose(stream.mean_, centre, rtol=1e-5)
    assert float(stream.standardiser_.scale) == pytest.approx(float(fitted.standardiser_.scale), rel=1e-5)


def test_dead_components_are_those_no_row_uses(coder):
    """Of a few rows many, of more of them fewer."""
    for window in (UNSEEN[:3], UNSEEN[:3].astype(np.float64), UNSEEN):
        used = np.unique(coder.transform(window).indices)
        np.testing.assert_array_equal(np.setdiff1d(np.arange(24), used), coder.dead_components(window))
    assert len(coder.dead_components(UNSEEN[:3])) > len(coder.dead_components(UNSEEN))


USES = ("transform", "activation_probability", "dead_components", "score", "inverse_transform")


@pytest.mark.parametrize("use", USES)
def test_before_fit_it_says_so(use):
    with pytest.raises(NotFittedError, match="fit"):
        getattr(SparseCoder(), use)(X)


def test_score_is_the_explained_variance(coder):
    expected = r2_score(UNSEEN, coder.inverse_transform(coder.transform(UNSEEN)), multioutput="variance_weighted")
    assert coder.score(UNSEEN) == pytest.approx(expected, abs=1e-5)
    assert coder.score(UNSEEN[:1]) in (0.0, 1.0)  # one row does not vary


def test_feature_names(coder):
    assert list(coder.get_feature_names_out()[:2]) == ["sparsecoder0", "sparsecoder1"]
    assert len(coder.get_feature_names_out()) == 24
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    named = quick(max_steps=2).fit(frame)
    assert list(named.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        named.transform(frame[frame.columns[::-1]])


# ── kinds of input ──

KINDS = {
    "numpy float32": lambda x, folder: x,
    "numpy float64": lambda x, folder: x.astype(np.float64),
    "Fortran order": lambda x, folder: np.asfortranarray(x),
    "every other row": lambda x, folder: np.repeat(x, 2, axis=0)[::2],
    "torch float32": lambda x, folder: torch.from_numpy(x),
    "torch float64": lambda x, folder: torch.from_numpy(x).double(),
    "torch with gradient": lambda x, folder: torch.from_numpy(x).requires_grad_(),
    "pandas": lambda x, folder: pd.DataFrame(x),
    "list": lambda x, folder: x.tolist(),
    "memory map": lambda x, folder: (np.save(folder / "x.npy", x), np.load(folder / "x.npy", mmap_mode="r"))[1],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_gives_the_same_coder(coder, tmp_path, kind):
    given = KINDS[kind](X, tmp_path)
    fitted = quick().fit(given)
    assert same_bits(fitted.model_tensors(), coder.model_tensors())
    assert nearly_the_same(fitted.transform(given), coder.transform(X))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32])
def test_other_tensors(coder, dtype):
    tensor = (10 * torch.from_numpy(X)).to(dtype)
    codes = quick(max_steps=2).fit(tensor).transform(tensor)
    assert codes.shape == (len(X), 24)


# ── scikit-learn's tools ──


@pytest.mark.usefixtures("no_simulation")
def test_pipeline_and_grid_search():
    target = X @ np.arange(12.0)
    pipeline = make_pipeline(StandardScaler(), quick(max_steps=4), Ridge())
    grid = {"sparsecoder__n_active": [2, 6], "sparsecoder__n_components": np.array([12, 24])}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, target)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(X)) == len(X)


@pytest.mark.usefixtures("no_simulation")
def test_grid_search_by_its_own_score_prefers_more_active_components():
    search = GridSearchCV(quick(max_steps=60), {"n_active": [1, 6]}, cv=2).fit(X)
    assert search.best_params_ == {"n_active": 6}


def test_clone_copies_parameters_and_nothing_learned(coder):
    copy = clone(coder)
    assert copy.get_params() == coder.get_params()
    assert not hasattr(copy, "components_")
    assert same_bits(copy.fit(X).model_tensors(), coder.model_tensors())


def test_joblib_in_parallel_is_joblib_in_turn():
    """Another process gives the same scores."""
    scores = [cross_val_score(quick(max_steps=4), X, cv=2, n_jobs=jobs) for jobs in (1, 2)]
    assert list(scores[0]) == list(scores[1])


@pytest.mark.parametrize(
    ("method", "n_rows", "warned"),
    [
        ("hard-gaussian", 150, True),
        ("hard-gaussian", 240, False),
        ("fista", 150, True),
        ("topk", 150, False),
        ("gaussian", 150, False),
    ],
)  # fmt: skip
def test_too_few_rows_to_set_the_count_on_are_told(method, n_rows, warned):
    """Where all rows are trained on and codes are counted by a cut: neither of dense codes nor of a fixed count."""
    x = np.random.default_rng(0).standard_normal((n_rows, 8)).astype(np.float32)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        quick(n_components=8, method=method, max_steps=3).fit(x)
    assert any("too few to keep any aside" in str(one.message) for one in seen) == warned
