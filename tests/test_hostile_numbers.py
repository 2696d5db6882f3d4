"""Numbers at the edge: each either works, with finite results, or is answered with one sentence."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from small import quick, small_data

sys.path.insert(0, str(Path(__file__).parents[1]))

from drills.properties import CASES, check

from softspike.data import ArrayRows
from softspike.methods import METHODS, Plan, build

X = small_data(96)
RANDOM = np.random.default_rng(0)


def spoiled(value):
    x = X.copy()
    x[5, 7] = value
    return x


WORKS = {
    "two samples": X[:2],
    "one feature": X[:, :1],
    "duplicates": np.repeat(X[:4], 24, axis=0),
    "far more features than samples": RANDOM.normal(size=(5, 400)),
    "1e-30, float32": X * np.float32(1e-30),
    "1e-30, float64": X.astype(np.float64) * 1e-30,
    "1e+30, float32": X * np.float32(1e30),
    "1e+30, float64": X.astype(np.float64) * 1e30,
    "as large as float32 goes": X / np.abs(X).max() * np.float32(3e38),
    "every column on its own scale": X * np.logspace(-30, 30, 12),
    "one row a million times the others": np.vstack([X, X[:1] * 1e6]),
    "mostly zeros": np.where(RANDOM.random((200, 12)) < 0.97, 0, 1) * RANDOM.normal(size=(200, 12)),
    "float16": X.astype(np.float16),
    "bfloat16": torch.from_numpy(X).bfloat16(),
    "float8": torch.from_numpy(X).to(torch.float8_e4m3fn),
    "int8": (20 * X).astype(np.int8),
    "int64": (1e15 * X).astype(np.int64),
    "bytes": (20 * np.abs(X)).astype(np.uint8),
    "booleans": X > 1,
    "objects that are numbers": X.astype(object),
    "columns first": np.asfortranarray(X),
    "every other row, backwards": X[::2, ::-1],
}

REFUSED = {
    "NaN": (spoiled(np.nan), "the first NaN at row 5, column 7"),
    "Inf": (spoiled(np.inf), "the first infinity at row 5, column 7"),
    "-Inf": (spoiled(-np.inf), "the first infinity at row 5, column 7"),
    "beyond float32": (X.astype(np.float64) * 1e300, "too large for float32"),
    "below float32": (X.astype(np.float64) * 1e-300, "12 constant .* expected every feature to vary in float32"),
    "a mean that drowns the rest": (X + np.float32(1e9), "12 constant features of 12"),
    "one constant": (np.where(np.arange(12) == 3, 1.0, X), r"1 constant feature of 12 \(column 3"),
    "one row, again and again": (np.repeat(X[:1], 24, axis=0), "12 constant features of 12"),
    "one sample": (X[:1], "1 sample, expected at least 2"),
    "no sample": (X[:0], "0 samples, expected at least 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKS)
def test_what_works(case):
    x = WORKS[case]
    coder = quick(max_steps=5).fit(x)
    codes, std = coder.transform(x, return_std=True)
    found = [codes.data, std, coder.activation_probability(x), coder.inverse_transform(codes), coder.components_]
    assert all(np.isfinite(values).all() for values in found)
    assert codes.nnz > 0
    assert -0.5 < coder.score(x) < 1  # neither lost in the squares of tiny numbers nor in those of large ones


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    x, said = REFUSED[case]
    with pytest.raises(ValueError, match=said) as caught:
        quick(max_steps=5).fit(x)
    assert "\n" not in str(caught.value)


def test_empty_batches():
    coder = quick(max_steps=5).fit(X)
    for use in (coder.transform, coder.score, coder.activation_probability, coder.partial_fit):
        with pytest.raises(ValueError, match="the data has 0 samples, expected at least 1; give more samples"):
            use(X[:0])
    assert coder.inverse_transform(np.zeros((0, 24))).shape == (0, 12)


def test_rows_that_are_added_while_training_are_not_seen():
    class Growing(ArrayRows):
        taken = 0

        def __len__(self):
            Growing.taken += 1
            return len(self.array) if Growing.taken > 30 else 400

    x = small_data(512)
    assert np.isfinite(quick(max_steps=40).fit_rows(Growing(x)).score(x))


@pytest.mark.parametrize("method", [name for name in METHODS if name.endswith("-gamma")])
@pytest.mark.parametrize("push", [-1e4, -14.0, 14.0, 1e4])
def test_gradients_of_gamma_levels_at_their_clamps_are_finite(method, push):
    """Through the whole loss, samples of the level included."""
    coder = build(METHODS[method], Plan(12, 24, 0.1, 100, 32, n_samples=2), 0).coder
    with torch.no_grad():
        for head in (coder.threshold.level.log_concentration, coder.threshold.level.log_rate):
            head.bias.fill_(push)
    loss = coder.loss(torch.from_numpy(X), 50, torch.Generator().manual_seed(0))
    loss.total.backward()
    assert loss.total.isfinite()
    for name, parameter in coder.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


@settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(CASES)
def test_random_shapes_dtypes_and_settings(case):
    assert check(case) in ("learned", "refused", "diverged")
