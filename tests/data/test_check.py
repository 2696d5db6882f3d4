"""Each kind of unusable data gets its own sentence; usable data passes."""

import re

import numpy as np
import pytest
import torch

from softspike.data import ArrayRows, DataError, ShardRows, check_rows
from softspike.data.chunks import chunks

GOOD = np.random.default_rng(2).normal(size=(40, 8))


def with_values(*cells):
    """GOOD with ((row, column), value) put in."""
    x = GOOD.copy()
    for place, value in cells:
        x[place] = value
    return x


def constant(*columns):
    x = GOOD.copy()
    x[:, list(columns)] = 0.1
    return x


BAD = [
    (np.zeros(5), "the data has shape (5,), expected (n_samples, n_features); Reshape your data"),
    (np.zeros((5, 2, 2)), "the data has shape (5, 2, 2), expected (n_samples, n_features); flatten each sample"),
    (np.zeros((15, 0)), "0 feature(s) (shape=(15, 0)) while a minimum of 1 is required"),
    (GOOD[:1], "the data has 1 sample, expected at least 2; give more samples"),
    (GOOD[:0], "the data has 0 samples, expected at least 2"),
    (
        with_values(((17, 3), np.nan)),
        "contains NaN or infinity in 1 value, the first NaN at row 17, column 3 (counted from 0)",
    ),
    (
        with_values(((39, 0), np.nan), ((17, 3), np.inf), ((17, 5), -np.inf)),
        "in 3 values, the first infinity at row 17, column 3",
    ),
    (with_values(((4, 7), 1e300)), "too large for float32 in 1 value, the first 1e+300 at row 4, column 7"),
    (constant(2), "has 1 constant feature of 8 (column 2, from 0), expected every feature to vary in float32; drop"),
    (constant(0, 3), "2 constant features of 8 (columns 0, 3, from 0)"),
    (constant(*range(7)), "7 constant features of 8 (columns 0, 1, 2, 3, 4, …, from 0)"),
    ([[1.0, 2.0]], "the data is a list, expected an array"),
]


@pytest.mark.parametrize(("data", "message"), BAD)
@pytest.mark.parametrize("chunk_values", [2**22, 24])
def test_bad_data_gets_one_sentence(data, message, chunk_values, monkeypatch):
    monkeypatch.setattr("softspike.data.chunks._CHUNK_VALUES", chunk_values)
    with pytest.raises(DataError) as caught:
        check_rows(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda x: x, ArrayRows, lambda x: ShardRows([x[:10], x[10:]]), torch.from_numpy])
def test_every_kind_of_rows_is_checked(wrap):
    assert len(check_rows(wrap(GOOD))) == 40
    for value, message in ((np.nan, "first NaN at row 17, column 3"), (-1e300, "first -1e+300 at row 17, column 3")):
        with pytest.raises(DataError, match=re.escape(message)):
            check_rows(wrap(with_values(((17, 3), value))))


class OnlyRows:
    """The bare protocol, without the numbers before float32."""

    n_features = 1

    def __len__(self):
        return 3

    def take(self, indices):
        return torch.tensor([[1.0], [torch.inf], [2.0]])[indices]


def test_the_bare_protocol_is_enough():
    with pytest.raises(DataError, match="in 1 value, the first infinity at row 1, column 0"):
        check_rows(OnlyRows())


def test_what_may_pass():
    assert len(check_rows(constant(1, 2), constant="keep")) == 40
    assert len(check_rows(GOOD[:1], min_samples=1, constant="keep")) == 1
    assert len(check_rows(GOOD.astype(np.float16))) == 40
    with pytest.raises(ValueError, match="constant is 'drop', expected"):
        check_rows(GOOD, constant="drop")


def test_the_data_is_read_once(monkeypatch):
    passes = []

    def counted(rows, size=8192):
        passes.append(1)
        return chunks(rows, size)

    monkeypatch.setattr("softspike.data.check.chunks", counted)
    check_rows(GOOD)
    assert passes == [1]
