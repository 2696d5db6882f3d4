"""What the estimator says about its codes: probabilities, standard deviations; and codes that are never negative."""

from functools import cache

import numpy as np
import pytest
import small
import torch

from softspike import SparseCoder
from softspike.data import SparseSample, synthetic
from softspike.methods import AUTOENCODERS, METHODS, POSITIVE_METHODS
from softspike.metric.calibration import brier_score, calibration_error, interval_coverage
from softspike.metric.recovery import absolute_correlation, match

N_TRAIN = 4096


@cache
def truth() -> SparseSample:
    """24 sources in 16 dimensions, 2 of them active, with noise."""
    return synthetic(N_TRAIN + 2048, 16, 24, 2, seed=0, noise=0.1)


@cache
def coder(method: str = "hard-gaussian") -> SparseCoder:
    small.torch.set_num_threads(1)
    made = SparseCoder(24, n_active=2, positive=True, method=method, max_steps=1000, random_state=0, verbose=False)
    return made.fit(truth().x[:N_TRAIN].numpy())


def unseen() -> np.ndarray:
    return truth().x[N_TRAIN:].numpy()


def test_probability_is_the_rate_of_sampled_codes() -> None:
    """γ against the share of non-zeros in 4000 draws of q(z|x), five standard errors."""
    model, n = coder().coder_, 4000
    x = coder().standardiser_(torch.from_numpy(unseen()[:20]))
    with torch.no_grad():
        gamma, rate = model.activation_probability(x), (model.law(x).sample((n,)) != 0).double().mean(0)
    assert ((rate - gamma).abs() <= 5 * (gamma * (1 - gamma) / n).sqrt() + 1e-3).all()


def test_probabilities_are_calibrated() -> None:
    """On known supports: ECE ≤ 0.03, and a better Brier score than a TopK autoencoder's normalised activations."""
    scores = {}
    for method in ("hard-gaussian", "topk"):
        codes = torch.from_numpy(coder(method).transform(unseen()).toarray())
        pairs = match(absolute_correlation(codes, truth().codes[N_TRAIN:]))
        said = torch.from_numpy(coder(method).activation_probability(unseen()))[:, pairs.found]
        happened = (truth().codes[N_TRAIN:] != 0)[:, pairs.truth]
        scores[method] = calibration_error(said, happened), brier_score(said, happened)
    assert scores["hard-gaussian"][0] <= 0.03
    assert scores["hard-gaussian"][1] < scores["topk"][1]


def test_intervals_cover_the_true_coefficients() -> None:
    """Nine tenths said; 85 to 95 % of those active in the code, in units of the true dictionary, to within .007: two
    standard errors of 4,000 intervals.

    Of sources whose atom was found, |cos| > 0.9: the coefficient of any other component has no true counterpart.
    """
    codes, std = coder().transform(unseen(), return_std=True)
    assert std.shape == codes.shape
    assert std.dtype == codes.dtype
    assert (std >= 0).all()
    code, true = torch.from_numpy(codes.toarray()), truth().codes[N_TRAIN:]
    pairs = match(absolute_correlation(code, true))
    atoms = torch.from_numpy(coder().components_.T)[:, pairs.found]
    length = atoms.norm(dim=0)
    found = (atoms * truth().dictionary[:, pairs.truth]).sum(0) / length > 0.9
    assert found.double().mean() > 0.8
    code, spread = code[:, pairs.found] * length, torch.from_numpy(std)[:, pairs.found] * length
    active = (code != 0) & found
    covered = interval_coverage(code[active], spread[active], true[:, pairs.truth][active])
    assert 0.85 - 0.007 <= covered <= 0.95 + 0.007


def test_signed_codes_without_noise() -> None:
    """32 sources in 16 dimensions, 4 active: one pass often finds a wrong support there, and says so.

    ECE of the law as trained over 0.04, calibrated at most 0.03; 85 to 95 % of the active coefficients covered.
    """
    known = synthetic(4096 + 2048, 16, 32, 4, seed=0, positive=False)
    made = SparseCoder(32, n_active=4, max_steps=1000, random_state=0, verbose=False, device="cpu")
    made.fit(known.x[:4096].numpy())
    test, true = known.x[4096:], known.codes[4096:]
    codes, std = made.transform(test.numpy(), return_std=True)
    code = torch.from_numpy(codes.toarray())
    pairs = match(absolute_correlation(code, true))
    happened = true[:, pairs.truth] != 0
    with torch.no_grad():
        trained = made.coder_.trained_law(made.standardiser_(test)).activation_probability[:, pairs.found]
    said = torch.from_numpy(made.activation_probability(test.numpy()))[:, pairs.found]
    assert calibration_error(trained, happened) > 0.04
    assert calibration_error(said, happened) <= 0.03
    atoms = torch.from_numpy(made.components_.T)[:, pairs.found]
    unit = atoms.norm(dim=0) * (atoms * known.dictionary[:, pairs.truth]).sum(0).sign()
    code, spread = code[:, pairs.found] * unit, torch.from_numpy(std)[:, pairs.found] * unit.abs()
    active = code != 0
    assert 0.85 <= interval_coverage(code[active], spread[active], true[:, pairs.truth][active]) <= 0.95


def test_the_paper_is_left_as_it_is() -> None:
    x = small.small_data(64)
    paper = SparseCoder(**{**small.QUICK, "method": "thresholded-laplacian", "max_steps": 3}).fit(x)
    assert not paper.coder_.calibration.fitted
    batch = paper.standardiser_(torch.from_numpy(x))
    with torch.no_grad():
        std = paper.coder_.code_and_std(batch)[1]
        torch.testing.assert_close(std, paper.coder_.trained_law(batch).variance.sqrt())


@pytest.mark.parametrize("method", ["fista", "topk"])
def test_codes_without_a_posterior_have_no_std(method: str) -> None:
    x = small.small_data(64)
    plain = SparseCoder(**{**small.QUICK, "method": method, "max_steps": 3}).fit(x)
    with pytest.raises(NotImplementedError, match="hard-gaussian"):
        plain.transform(x, return_std=True)


@pytest.mark.usefixtures("no_simulation", "one_refit")
@pytest.mark.parametrize("method", sorted(POSITIVE_METHODS))
def test_positive_codes(method: str) -> None:
    """None below 0, most exactly 0, and data about 0 rather than about its mean, which autoencoders keep apart."""
    codes = SparseCoder(**{**small.QUICK, "method": method, "positive": True, "max_steps": 60}).fit(truth().x.numpy())
    z = codes.transform(unseen())
    assert z.min() >= 0
    assert z.max() > 0
    assert z.nnz < 0.5 * np.prod(z.shape)
    assert codes.mean_.any() == (method in AUTOENCODERS)


def test_positive_activity_is_honoured() -> None:
    """Within 2 % on unseen data, plus three standard errors of the mean count of these rows."""
    counts = np.diff(coder().transform(unseen()).indptr)
    assert counts.mean() == pytest.approx(2, rel=0.02, abs=3 * counts.std() / len(counts) ** 0.5)


@pytest.mark.parametrize("method", sorted(METHODS.keys() - POSITIVE_METHODS))
def test_methods_with_signed_codes_refuse(method: str) -> None:
    with pytest.raises(ValueError, match=r"positive is True.*hard-gaussian"):
        SparseCoder(4, method=method, positive=True).fit(small.small_data(64))


@pytest.mark.usefixtures("no_simulation")
def test_positive_stream_is_not_centred() -> None:
    x = small.small_data(256)
    stream = SparseCoder(**{**small.QUICK, "positive": True, "max_steps": 8})
    for part in np.split(x, 4):
        stream.partial_fit(part)
    assert not stream.mean_.any()
    assert float(stream.standardiser_.scale) == pytest.approx(float(np.sqrt(np.square(x).mean())), rel=1e-5)
    assert stream.transform(x).min() >= 0


@pytest.mark.parametrize(
    ("n_features", "settings"),
    [(1, {"n_components": 4, "n_active": 1, "positive": True}), (16, {"n_components": 8, "n_active": 7.99})],
)
def test_no_interval_is_absurd(n_features: int, settings: dict) -> None:
    """Where a law has no width to be widened: standard deviations stay below a hundred times the data's."""
    x = np.random.default_rng(0).standard_normal((1000, n_features))
    made = SparseCoder(**settings, max_steps=30, random_state=0, verbose=False, device="cpu").fit(x)
    assert made.transform(x, return_std=True)[1].max() < 100


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_more_active_than_features(dtype: type, positive: bool) -> None:
    """16 of 32 in 8 dimensions, where codes fit exactly and what is left is rounding: within 5 % on unseen rows."""
    x = synthetic(6000, 8, 32, 4, seed=0, noise=0.05, positive=positive).x.numpy().astype(dtype)
    made = SparseCoder(32, n_active=16, positive=positive, max_steps=200, random_state=0, verbose=False, device="cpu")
    assert made.fit(x[:3000]).transform(x[3000:]).nnz / 3000 == pytest.approx(16, rel=0.05)
