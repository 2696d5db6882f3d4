"""Every broken file gets one sentence with its name, and nothing is ever unpickled."""

import pickle

import numpy as np
import pandas
import pytest
import torch
from pictures import write_idx
from safetensors.torch import save_file
from scipy.io import savemat

from softspike.data import DataError, read_rows
from softspike.data.arrays import READERS


def assert_refused(path, key, message):
    with pytest.raises(DataError) as caught:
        read_rows(path, key)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


class Bomb:
    """Unpickling it would be noticed."""

    def __reduce__(self):
        return (pytest.fail, ("the file was unpickled",))


def pickled(path):
    path.write_bytes(pickle.dumps(Bomb()))


def objects_npy(path):
    np.save(path, np.array([[Bomb()]], dtype=object))


def matlab_73(path):
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(header + b"\x89HDF\r\n\x1a\n" + bytes(64))


BROKEN = [
    ("vector.npy", lambda p: np.save(p, np.zeros(7)), "has shape (7,), expected (n_samples, n_features)"),
    ("text.npy", lambda p: np.save(p, np.array([["a"]])), "dtype is <U1, expected real numbers"),
    ("objects.npy", objects_npy, "could not be read (Array can't be memory-mapped: Python objects in dtype)"),
    ("pickle.npy", pickled, "could not be read (the magic string is not correct"),
    ("pickle.npz", pickled, "this is not an .npz archive"),
    (
        "objects.npz",
        lambda p: np.savez(p, x=np.array([[Bomb()]], dtype=object)),
        "could not be read (Object arrays cannot",
    ),
    ("pickle.mat", pickled, "this does not begin as a MATLAB file does; save it again with -v7"),
    ("pickle.safetensors", pickled, "could not be read ("),
    ("pickle.parquet", pickled, "could not be read ("),
    ("new.mat", matlab_73, "this is a MATLAB 7.3 file, expected an older version; save it with -v7"),
    ("words.mat", lambda p: savemat(p, {"note": "text"}), "the file holds 0 arrays (none), expected one"),
    ("vector.safetensors", lambda p: save_file({"x": torch.zeros(3)}, p), "has shape (3,), expected (n_samples"),
    ("data.npt", lambda p: p.touch(), "the suffix '.npt' is not known, expected .npy, .npz, .mat"),
    ("data.parquett", lambda p: p.touch(), "; did you mean .parquet?"),
    ("data.docx", lambda p: p.touch(), "or a folder of .npy shards or images; convert it to one of these"),
    ("data", lambda p: p.touch(), "the name has no suffix, expected .npy"),
    ("missing.npy", lambda p: None, "this does not exist, expected a file or folder of data; check the path"),
    ("name" * 100 + ".npy", lambda p: None, "could not be read ("),
    ("empty", lambda p: p.mkdir(), "the folder holds neither .npy shards nor images, expected either"),
]


@pytest.mark.parametrize(("name", "make", "message"), BROKEN)
def test_a_broken_file_gets_one_sentence(tmp_path, name, make, message):
    make(tmp_path / name)
    assert_refused(tmp_path / name, None, message)


@pytest.mark.parametrize("kept", [0, 7, 60, 0.5, 0.97])
@pytest.mark.parametrize("suffix", READERS)
def test_a_truncated_file_gets_one_sentence(tmp_path, suffix, kept):
    path, array = tmp_path / f"cut{suffix}", np.random.default_rng(0).normal(size=(200, 10))
    save = {
        ".npy": lambda: np.save(path, array),
        ".npz": lambda: np.savez(path, x=array),
        ".mat": lambda: savemat(path, {"x": array}),
        ".safetensors": lambda: save_file({"x": torch.from_numpy(array)}, path),
        ".parquet": lambda: pandas.DataFrame(array, columns=list("abcdefghij")).to_parquet(path),
        ".gz": lambda: write_idx(path, (50 * array).astype(np.uint8)),
    }
    save[suffix]()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if isinstance(kept, float) else kept])
    assert_refused(path, None, "")


SHARDS = [
    (
        [np.zeros((2, 3)), np.zeros((2, 4))],
        "the shard part1.npy has shape (2, 4), expected (n_samples, 3) in every shard",
    ),
    ([np.zeros(3)], "the shard part0.npy has shape (3,), expected (n_samples, n_features)"),
    ([np.zeros((2, 3)), np.array([[Bomb()]], dtype=object)], "the shard part1.npy could not be read (Array can't"),
]


@pytest.mark.parametrize(("arrays", "message"), SHARDS)
def test_a_broken_shard_is_named(tmp_path, arrays, message):
    for number, array in enumerate(arrays):
        np.save(tmp_path / f"part{number}.npy", array)
    assert_refused(tmp_path, None, message)


def test_a_key_where_there_is_nothing_to_choose(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    assert_refused(tmp_path / "a.npy", "x", "the key 'x' was given, expected none as an .npy file holds a single array")
    assert_refused(tmp_path, "x", "the key 'x' was given, expected none as a folder holds a single array")
