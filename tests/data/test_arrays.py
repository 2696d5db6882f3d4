"""Every format gives back what was saved."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.torch import save_file
from scipy.io import savemat

from softspike.data import DataError, read_rows


def save_npy(path, array):
    with open(path, "wb") as file:  # np.save would add .npy to a name in capitals
        np.save(file, array)


def save_safetensors(path, array):
    save_file({"x": torch.from_numpy(np.ascontiguousarray(array))}, path)


def save_shards(path, array):
    path.mkdir(exist_ok=True)
    for number, part in enumerate((array[:1], array[1:])):
        np.save(path / f"part{number}.npy", part)


# how it is saved, and the name that tells the reader
FORMATS = [
    (save_npy, "a.npy"),
    (save_npy, "A.NPY"),
    (lambda path, array: np.save(path, np.asfortranarray(array)), "columns.npy"),
    (lambda path, array: np.savez(path, x=array), "a.npz"),
    (lambda path, array: np.savez_compressed(path, x=array), "small.npz"),
    (lambda path, array: savemat(path, {"x": array, "rate": 3.0, "note": "text"}), "a.mat"),
    (save_safetensors, "a.safetensors"),
    (save_shards, "shards"),
]
NUMBERS = st.one_of(
    arrays(
        np.float32, array_shapes(min_dims=2, max_dims=4, min_side=2, max_side=4), elements=st.floats(-9, 9, width=32)
    ),
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=3, min_side=2, max_side=4)),
)


def all_of(rows):
    return rows.take(torch.arange(len(rows))).numpy()


@pytest.mark.parametrize(("save", "name"), FORMATS)
@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=NUMBERS)
def test_round_trip(save, name, tmp_path, array):
    target = tmp_path / name
    save(target, array)
    rows = read_rows(target)
    assert rows.image_shape == (array.shape[1:] if array.ndim > 2 else None)
    np.testing.assert_array_equal(all_of(rows), array.reshape(len(array), -1).astype(np.float32))


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".safetensors"])
def test_a_key_chooses_among_several(tmp_path, suffix):
    path = tmp_path / f"several{suffix}"
    first, second = np.zeros((3, 2), np.float32), np.ones((4, 5), np.float32)
    save = {".npz": lambda d: np.savez(path, **d), ".mat": lambda d: savemat(path, d)}
    save.get(suffix, lambda d: save_file({k: torch.from_numpy(v) for k, v in d.items()}, path))(
        {"a": first, "b": second}
    )
    np.testing.assert_array_equal(all_of(read_rows(path, key="b")), second)
    with pytest.raises(DataError, match=r"holds 2 arrays \(a, b\), expected one; choose one with its key"):
        read_rows(path)
    with pytest.raises(DataError, match=r"no array 'c', expected one of its arrays \(a, b\)"):
        read_rows(path, key="c")


def test_safetensors_may_hold_bfloat16(tmp_path):
    save_file({"x": torch.arange(6.0).reshape(3, 2).bfloat16()}, tmp_path / "a.safetensors")
    np.testing.assert_array_equal(all_of(read_rows(tmp_path / "a.safetensors")), np.arange(6).reshape(3, 2))
