"""Rows give the same batch wherever they live: in an array, a file, shards, a tensor."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softspike.data import ArrayRows, DataError, Rows, ShardRows, StandardisedRows, Standardiser, TensorRows
from softspike.data.chunks import as_rows, chunks

VALUES = np.random.default_rng(0).normal(size=(23, 5)).astype(np.float32)


def memory_mapped(folder):
    np.save(folder / "values.npy", VALUES)
    return np.load(folder / "values.npy", mmap_mode="r")


KINDS = {
    "array": lambda folder: ArrayRows(VALUES),
    "columns first": lambda folder: ArrayRows(np.asfortranarray(VALUES)),
    "big-endian": lambda folder: ArrayRows(VALUES.astype(">f8")),
    "memmap": lambda folder: ArrayRows(memory_mapped(folder)),
    "shards": lambda folder: ShardRows([VALUES[:4], VALUES[4:5], VALUES[5:5], VALUES[5:]]),
    "tensor": lambda folder: TensorRows(torch.from_numpy(VALUES)),
    "standardised": lambda folder: StandardisedRows(ArrayRows(VALUES), Standardiser.identity(5)),
}


@pytest.fixture(params=KINDS, scope="module")
def rows(request, tmp_path_factory):
    return KINDS[request.param](tmp_path_factory.mktemp("rows"))


@settings(deadline=None, derandomize=True)
@given(indices=st.lists(st.integers(-len(VALUES), len(VALUES) - 1), max_size=40))
def test_takes_what_was_asked_in_that_order(rows, indices):
    batch = rows.take(torch.tensor(indices, dtype=torch.long))
    assert batch.dtype == torch.float32
    assert batch.shape == (len(indices), 5)
    np.testing.assert_array_equal(batch.numpy(), VALUES[indices])


def test_every_kind_is_rows(rows):
    assert isinstance(rows, Rows)
    assert (len(rows), rows.n_features) == VALUES.shape


def test_row_numbers_beyond_the_end_are_refused(rows):
    with pytest.raises(IndexError):
        rows.take(torch.tensor([0, len(VALUES)]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "bool"])
def test_converts_any_real_dtype(dtype):
    array = np.arange(6).reshape(3, 2).astype(dtype)
    expected = array[[2, 0]].astype(np.float32)
    for rows in (ArrayRows(array), TensorRows(torch.from_numpy(array)), ShardRows([array[:1], array[1:]])):
        np.testing.assert_array_equal(rows.take(torch.tensor([2, 0])).numpy(), expected)


def test_a_batch_is_a_copy():
    values = VALUES.copy()
    ArrayRows(values).take(torch.arange(3)).zero_()
    np.testing.assert_array_equal(values, VALUES)


def test_chunks_cover_all_rows_once_and_shrink_for_wide_data(monkeypatch):
    monkeypatch.setattr("softspike.data.chunks._CHUNK_VALUES", 20)
    parts = list(chunks(ArrayRows(VALUES)))
    assert [part.start for part in parts] == [0, 4, 8, 12, 16, 20]
    np.testing.assert_array_equal(torch.cat([part.x for part in parts]).numpy(), VALUES)


BAD = [
    (lambda: ArrayRows(np.zeros(3)), "has shape (3,), expected (n_samples, n_features); Reshape your data"),
    (lambda: ArrayRows(np.zeros((2, 3, 4))), "has shape (2, 3, 4), expected (n_samples, n_features); flatten"),
    (lambda: TensorRows(torch.tensor(1.0)), "has shape (), expected (n_samples, n_features); give"),
    (lambda: ArrayRows(np.zeros((2, 2), complex)), "Complex data not supported: the dtype is complex128"),
    (lambda: TensorRows(torch.zeros(2, 2, dtype=torch.complex64)), "Complex data not supported"),
    (lambda: ArrayRows(np.array([["a"]])), "dtype is <U1, expected real numbers; convert it"),
    (lambda: ArrayRows(np.array([[None]])), "dtype is object, expected real numbers; convert it"),
    (lambda: ShardRows([]), "no shards were given, expected at least one"),
    (
        lambda: ShardRows([np.zeros((2, 3)), np.zeros((2, 4))]),
        "shard 1 has 4 features and shard 0 has 3, expected equal",
    ),
    (lambda: as_rows([[1.0]]), "the data is a list, expected an array, tensor or Rows; convert it"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(DataError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_importing_data_does_not_import_the_format_libraries():
    heavy = ["skimage", "sklearn", "scipy", "pyarrow", "PIL", "safetensors", "pandas"]
    script = f"import sys, softspike.data; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
