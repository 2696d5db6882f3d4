"""Statistics equal numpy's in float64, however the data is cut, and the standardiser undoes itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softspike.data import ArrayRows, DataError, RunningMoments, StandardisedRows, Standardiser

NORMAL = np.random.default_rng(1).normal(size=(501, 6))

# name: data in float64; the moments are compared after the cast to float32 that rows do.
DATA = {
    "standard": NORMAL,
    "far from zero": 1e6 + NORMAL,
    "tiny": 1e-30 * NORMAL,
    "huge": 1e30 * (NORMAL + 0.5),
    "mixed scales": NORMAL * 10.0 ** np.arange(-9, 9, 3),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("chunk", [1, 7, 501])
def test_running_moments_equal_numpy(name, chunk):
    x = DATA[name].astype(np.float32)
    moments = RunningMoments(6)
    for start in range(0, len(x), chunk):
        moments.update(torch.from_numpy(x[start : start + chunk]))
    assert moments.count == 501
    exact = x.astype(np.float64)
    np.testing.assert_allclose(moments.mean.numpy(), exact.mean(0), rtol=1e-9, atol=1e-12 * exact.std())
    np.testing.assert_allclose(moments.variance.numpy(), exact.var(0), rtol=1e-9)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("per_feature", [False, True])
def test_standardised_rows_have_squared_norm_equal_to_width(name, per_feature):
    rows = ArrayRows(DATA[name].astype(np.float32))
    standardiser = Standardiser.fit(rows, per_feature=per_feature, chunk=100)
    assert standardiser.scale.shape == ((6,) if per_feature else ())
    y = StandardisedRows(rows, standardiser).take(torch.arange(len(rows))).double()
    assert torch.isfinite(y).all()
    # Beyond 1e6 the float32 mean itself is rounded by 0.03 standard deviations: 0.001 of the variance.
    assert y.square().sum(1).mean().item() == pytest.approx(6, rel=2e-3)
    if per_feature:
        np.testing.assert_allclose(y.std(0, correction=0).numpy(), 1, rtol=1e-5)


@settings(deadline=None, derandomize=True)
@given(
    x=arrays(np.float32, (7, 3), elements=st.floats(-1e3, 1e3, width=32)),
    per_feature=st.booleans(),
)
def test_inverse_undoes_forward(x, per_feature):
    standardiser = Standardiser.fit(ArrayRows(x), per_feature=per_feature)
    back = standardiser.inverse(standardiser(torch.from_numpy(x)))
    np.testing.assert_allclose(back.numpy(), x, rtol=1e-5, atol=1e-5 * max(1e-3, float(np.abs(x).max())))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 1e30])
def test_constant_features_become_zero(value):
    rows = ArrayRows(np.full((10, 2), value, np.float32))
    for per_feature in (False, True):
        standardiser = Standardiser.fit(rows, per_feature=per_feature, chunk=3)
        assert standardiser.scale.unique().tolist() == [1]
        assert not standardiser(rows.take(torch.arange(10))).any()


def test_identity_leaves_the_data():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Standardiser.identity(3)(x), x)
    assert torch.equal(Standardiser.identity(3).inverse(x), x)


def test_state_dict_round_trip():
    fitted = Standardiser.fit(ArrayRows(NORMAL), per_feature=True)
    state = fitted.state_dict()
    assert sorted(state) == ["mean", "scale"]
    again = Standardiser(**state)
    assert torch.equal(again.mean, fitted.mean)
    assert torch.equal(again.scale, fitted.scale)


def test_an_empty_batch_changes_nothing():
    moments = RunningMoments(6)
    moments.update(torch.from_numpy(NORMAL))
    before = moments.variance.clone()
    moments.update(torch.empty(0, 6))
    assert torch.equal(moments.variance, before)


BAD = [
    (lambda: RunningMoments(3).update(torch.zeros(2, 4)), "the batch has shape (2, 4), expected (n_samples, 3)"),
    (lambda: RunningMoments(3).update(torch.zeros(3)), "the batch has shape (3,), expected (n_samples, 3)"),
    (lambda: Standardiser.fit(ArrayRows(np.zeros((0, 3)))), "no rows were seen, expected at least one"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(DataError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
