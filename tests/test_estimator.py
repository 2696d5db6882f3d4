"""SparseCoder: its codes, its sparsity, its streams, its files, in scikit-learn's tools and on every kind of input."""

import json
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small import QUICK, same_bits, small_data

from softspike import SparseCoder
from softspike.data import photograph_patches
from softspike.methods import METHODS, Built

X, UNSEEN = small_data(), small_data(4000, seed=1)
DENSE = {"gaussian", "laplacian"}  # their codes have no zeros, so they have no sparsity to honour


def quick(**changes):
    return SparseCoder(**{**QUICK, "max_steps": 20, **changes})


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
    assert coder.mean_.shape == (12,)
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


def test_activation_probability_is_a_probability(coder):
    probability = coder.activation_probability(UNSEEN)
    assert probability.shape == (len(UNSEEN), 24)
    assert probability.min() >= 0
    assert probability.max() <= 1
    active = coder.transform(UNSEEN).toarray() != 0
    assert probability[active].mean() > 2 * probability[~active].mean()


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


def test_pipeline_and_grid_search():
    target = X @ np.arange(12.0)
    pipeline = make_pipeline(StandardScaler(), quick(max_steps=4), Ridge())
    grid = {"sparsecoder__n_active": [2, 6], "sparsecoder__n_components": np.array([12, 24])}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, target)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(X)) == len(X)


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


KEEPERS = {
    "pickle": lambda coder, folder: pickle.loads(pickle.dumps(coder)),
    "joblib": lambda coder, folder: (joblib.dump(coder, folder / "c.joblib"), joblib.load(folder / "c.joblib"))[1],
    "save": lambda coder, folder: (coder.save(folder / "run"), SparseCoder.load(folder / "run"))[1],
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("keeper", KEEPERS)
def test_kept_and_fetched_is_the_same(tmp_path, keeper, method):
    fitted = quick(method=method, max_steps=3).fit(X)
    again = KEEPERS[keeper](fitted, tmp_path)
    assert same_bits(again.model_tensors(), fitted.model_tensors())
    assert again.get_params() == {**fitted.get_params(), "device": again.device}
    for x in (X, X.astype(np.float64)):
        one, other = fitted.transform(x), again.transform(x)
        assert one.data.tobytes() == other.data.tobytes()
        assert (one != other).nnz == 0
    assert again.components_.tobytes() == fitted.components_.tobytes()
    assert (again.n_steps_, again.n_samples_seen_) == (3, len(X))


# ── files ──


def test_a_fresh_process_gives_the_same_codes(coder, tmp_path):
    coder.save(tmp_path / "run")
    np.save(tmp_path / "x.npy", X)
    script = "import numpy as np, sys; from softspike import SparseCoder; f = sys.argv[1]; import torch; "
    script += "torch.set_num_threads(1); c = SparseCoder.load(f + '/run'); "
    script += "np.save(f + '/z.npy', c.transform(np.load(f + '/x.npy')).toarray())"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    assert np.load(tmp_path / "z.npy").tobytes() == coder.transform(X).toarray().tobytes()


def test_numpy_parameters_and_names_are_saved(tmp_path):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    coder = quick(n_components=np.int64(8), n_active=np.float32(2), random_state=np.int32(3), max_steps=2).fit(frame)
    coder.save(tmp_path)
    again = SparseCoder.load(tmp_path)
    assert again.random_state == 3
    assert list(again.feature_names_in_) == list(frame.columns)
    assert same_bits(again.model_tensors(), coder.model_tensors())


def test_a_composed_method_trains_but_says_that_it_has_no_name_to_save(tmp_path):
    def composed(plan):
        return Built(*METHODS["fista"](plan))

    coder = quick(method=composed, max_steps=2).fit(X)
    with pytest.raises(ValueError, match="a composed model cannot be saved by name"):
        coder.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def changed(folder, change):
    config = json.loads((folder / "config.json").read_bytes())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


CHANGES = {
    "another format": (lambda c: c.update(format=99), "has format 99, this version of softspike reads format"),
    "an unknown parameter": (
        lambda c: c["estimator"].update(colour="red"),
        "does not hold a SparseCoder of this version",
    ),
    "another size": (lambda c: c["estimator"].update(n_components=25), "does not hold a SparseCoder of this version"),
    "no size": (lambda c: c.pop("n_features"), "does not hold a SparseCoder of this version"),
    "another method": (lambda c: c["estimator"].update(method="guassian"), "did you mean 'gaussian'"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_model_of_another_version_is_refused(coder, tmp_path, case):
    change, said = CHANGES[case]
    coder.save(tmp_path)
    changed(tmp_path, change)
    with pytest.raises(ValueError, match=said) as caught:
        SparseCoder.load(tmp_path)
    assert "\n" not in str(caught.value)


# ── sparsity ──


@pytest.mark.parametrize("target", [{"sparsity": 0.05}, {"sparsity": 0.1}, {"sparsity": 0.3}, {"n_active": 5}])
@pytest.mark.parametrize("method", [name for name in METHODS if name not in DENSE])
def test_sparsity_is_honoured_on_unseen_data(method, target):
    settings = {"n_components": 40, "max_steps": 40, "batch_size": 64, "n_samples": 2, "random_state": 0}
    x = small_data(3000, n_features=20)
    coder = SparseCoder(method=method, **settings, **target).fit(x[:2000])
    measured = coder.transform(x[2000:]).nnz / 1000
    asked = target.get("n_active", 40 * target.get("sparsity", 0))
    assert coder.target_active_ == pytest.approx(asked)
    assert measured == pytest.approx(asked, rel=0.1)


# ── streams ──


def streamed(coder, x, batch_size):
    for first in range(0, len(x), batch_size):
        coder.partial_fit(x[first : first + batch_size])
    return coder


@pytest.mark.parametrize("method", [SparseCoder().method, "fista"])
def test_a_stream_ends_where_fit_does(method):
    """At equal steps and batch size, within 2 % of the explained variance on unseen patches."""
    train, unseen = photograph_patches(300 * 128, 2000, size=8)
    coder = SparseCoder(64, sparsity=0.1, method=method, max_steps=300, batch_size=128, random_state=0)
    fitted, stream = clone(coder).fit(train), streamed(coder, train, 128)
    assert stream.n_steps_ == fitted.n_steps_ == 300
    assert stream.n_samples_seen_ == fitted.n_samples_seen_ == len(train)
    assert stream.score(unseen) == pytest.approx(fitted.score(unseen), rel=0.02)
    assert stream.transform(unseen).nnz == pytest.approx(fitted.transform(unseen).nnz, rel=0.1)
    np.testing.assert_allclose(stream.mean_, fitted.mean_, atol=1e-5)


def test_one_call_of_partial_fit_takes_a_step_per_batch():
    one, many = quick(max_steps=8).partial_fit(X), streamed(quick(max_steps=8), X, 32)
    assert one.n_steps_ == many.n_steps_ == 8
    assert same_bits(one.model_tensors(), many.model_tensors())


def test_fit_forgets_what_was_there_before(coder):
    again = quick().partial_fit(X[:64]).fit(UNSEEN).fit(X)
    assert same_bits(again.model_tensors(), coder.model_tensors())


@pytest.mark.parametrize("fetch", [lambda coder, folder: coder, KEEPERS["save"], KEEPERS["pickle"]])
def test_partial_fit_goes_on_from_a_fit(tmp_path, fetch):
    """Mean and scale of old and new rows together; a warning that the schedule is over."""
    begun = fetch(quick(max_steps=5).fit(X), tmp_path)
    with pytest.warns(UserWarning, match="all 5 steps of the learning-rate schedule are done"):
        begun.partial_fit(UNSEEN[:32])
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
