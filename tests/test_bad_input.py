"""Bad input gets one sentence (what was given, what was needed, what to do) and exit code 2 or ValueError; nothing is
written. One row of a table per way to be wrong."""

import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from command import softspike
from small import QUICK, small_data

from softspike import SparseCoder
from softspike.methods import METHODS
from softspike.run import RunFolder
from softspike.solver import fista, lasso, omp

X = small_data(64)
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Files of every kind of badness, and a good run."""
    folder = tmp_path_factory.mktemp("bench")
    nan, inf, constant, huge = X.copy(), X.astype(np.float64), X.copy(), X.astype(np.float64)
    nan[7, 3], inf[0, 11], constant[:, [2, 5]], huge[5, 1] = np.nan, -np.inf, 4.0, 1e300
    arrays = {
        "good": X, "nan": nan, "inf": inf, "constant": constant, "huge": huge, "flat": X[0], "one": X[:1],
        "none": X[:0], "narrow": X[:, :5], "widthless": X[:, :0], "complex": X.astype(np.complex64),
        "wide": np.tile(X, 25),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "two.npz", a=X, b=X)
    pd.DataFrame({"name": ["a", "b"]}).to_parquet(folder / "words.parquet")
    (folder / "torn.npy").write_bytes((folder / "good.npy").read_bytes()[:200])
    (folder / "torn.parquet").write_bytes(b"PAR1 and nothing else")
    (folder / "text.csv").write_text("1,2\n3,4\n")
    (folder / "empty").mkdir()
    configs = {
        "unknown": {"n_component": 8}, "list": [1], "wrong": {"sparsity": "much"}, "boolean": {"n_active": True},
        "seed": {"random_state": "abc"}, "half": {"random_state": 1.5}, "no": {"positive": "no"},
        "gpu": {"device": "gpu"}, "million": {"n_components": 10**12}, "mole": {"n_components": 10**23},
        "deep": {"encoder_steps": 10**9}, "draws": {"n_samples": 10**9}, "fast": {"learning_rate": 1e300},
        "batch": {"batch_size": 10**15}, "starts": {"n_init": 10**6}, "steps": {"max_steps": 10**30},
        "beta": {"beta": 1e-300}, "text": {"max_steps": "9" * 10**5}, "wide": {"n_components": 2**24},
    }  # fmt: skip
    for name, content in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / "torn.json").write_text('{"sparsity": 0.')
    assert softspike("train", "good.npy", "-o", "trained", "--steps", 2, folder=folder).code == 0
    shutil.copytree(folder / "trained", folder / "future")
    config = json.loads((folder / "trained/config.json").read_text())
    (folder / "future/config.json").write_text(json.dumps({**config, "format": 2}))
    shutil.copytree(folder / "trained", folder / "damaged")
    os.truncate(folder / "damaged/model.safetensors", 500)
    return folder


# words of the command → fragments of the sentence: given, needed, what to do
TRAIN = {
    "flat.npy": ["has shape (12,)", "expected (n_samples, n_features)", "Reshape your data"],
    "none.npy": ["has 0 samples", "expected at least 2", "give more samples"],
    "one.npy": ["has 1 sample", "expected at least 2", "give more samples"],
    "widthless.npy": ["0 feature(s)", "minimum of 1", "give at least one column"],
    "complex.npy": ["dtype is complex64", "expected real numbers", "convert it"],
    "nan.npy": ["the first NaN at row 7, column 3", "expected finite numbers", "fill those values or drop"],
    "inf.npy": ["the first infinity at row 0, column 11", "expected finite numbers", "fill those values or drop"],
    "huge.npy": ["too large for float32", "1e+300 at row 5, column 1", "rescale the data"],
    "constant.npy": ["2 constant features of 12 (columns 2, 5", "expected every feature to vary", "drop them"],
    "absent.npy": ["does not exist", "expected a file or folder", "check the path"],
    "torn.npy": ["could not be read", "check that it is complete"],
    "torn.parquet": ["could not be read", "check that it is complete"],
    "words.parquet": ["the columns are name", "expected numbers", "convert them first"],
    "text.csv": ["suffix '.csv' is not known", "expected .npy", "convert it"],
    "empty": ["neither .npy shards nor images", "expected either", "give a folder"],
    "two.npz": ["holds 2 arrays (a, b)", "expected one", "choose one with its key"],
    "two.npz --key c": ["has no array 'c'", "(a, b)", "choose one of these"],
    "good.npy --sparsity 0": ["sparsity is 0.0", "expected a share strictly between 0 and 1"],
    "good.npy --sparsity 1": ["sparsity is 1.0", "expected a share strictly between 0 and 1"],
    "good.npy --sparsity -0.1": ["sparsity is -0.1", "expected a share strictly between 0 and 1"],
    "good.npy --sparsity nan": ["sparsity is nan", "expected a share strictly between 0 and 1"],
    "good.npy --active 0": ["n_active is 0.0", "above 0 and below n_components = 12"],
    "good.npy --active 12": ["n_active is 12.0", "above 0 and below n_components = 12"],
    "good.npy --components 0": ["n_components is 0", "expected a whole number ≥ 1"],
    "good.npy --steps 0": ["max_steps is 0", "expected a whole number ≥ 1"],
    "good.npy --batch -5": ["batch_size is -5", "expected a whole number ≥ 1"],
    "good.npy --samples 0": ["n_samples is 0", "expected a whole number ≥ 1"],
    "good.npy --rate 0": ["learning_rate is 0.0", "expected a number > 0"],
    "good.npy --rate inf": ["learning_rate is inf", "expected a number > 0"],
    "good.npy --constant-features maybe": ["constant_features is 'maybe'", "expected 'error' or 'keep'"],
    "good.npy --checkpoint-every 0": ["--checkpoint-every is 0", "expected a whole number ≥ 1"],
    "good.npy --method guassian": ["method is 'guassian'", "did you mean 'gaussian'?", "Known: "],
    "good.npy --device gpu": ["device is 'gpu'", "expected 'auto', 'cpu' or 'cuda'"],
    "good.npy --config unknown.json": ["unknown configuration key 'n_component'", "did you mean 'n_components'?"],
    "good.npy --config list.json": ["holds a list", "expected an object"],
    "good.npy --config wrong.json": ["sparsity is 'much'", "expected a share"],
    "good.npy --config boolean.json": ["n_active is True", "expected a count"],
    "good.npy --config seed.json": ["random_state is 'abc'", "expected a whole number"],
    "good.npy --config half.json": ["random_state is 1.5", "expected a whole number"],
    "good.npy --seed 99999999999999999999999": ["random_state is 99999999999999999999999", "expected a whole number"],
    "good.npy --config no.json": ["positive is 'no'", "expected True or False"],
    "good.npy --config gpu.json": ["device is 'gpu'", "expected 'auto', 'cpu' or 'cuda'"],
    "good.npy --config million.json": ["n_components is 1000000000000", "expected at most 16777216"],
    "good.npy --config mole.json": ["n_components is 100000000000000000000000", "expected at most 16777216"],
    "good.npy --config deep.json": ["encoder_steps is 1000000000", "expected at most 1024"],
    "good.npy --config draws.json": ["n_samples is 1000000000", "expected at most 65536"],
    "good.npy --config fast.json": ["learning_rate is 1e+300", "a number > 0 and at most 1e+12"],
    "good.npy --config batch.json": ["batch_size is 1000000000000000", "expected at most 16777216"],
    "good.npy --config starts.json": ["n_init is 1000000", "expected 1: this command trains one start"],
    "good.npy --config steps.json": ["max_steps is 1000000000000000000000000000000", "at most 1000000000000"],
    "good.npy --config beta.json": ["beta is 1e-300", "expected a number > 0, from 1e-12 to 1e+12"],
    "good.npy --config text.json": ["max_steps is '9999", "…, expected a whole number ≥ 1"],
    "wide.npy --config wide.json": ["16777216 and the data has 300 features", "a product of at most 4294967296"],
    "good.npy --components 1000000000000": ["n_components is 1000000000000", "expected at most 16777216"],
    "good.npy --config torn.json": ["cannot read the configuration torn.json"],
    "good.npy --config absent.json": ["cannot read the configuration absent.json"],
    "good.npy --resume": ["is not a run folder: it has no config.json"],
}


def untouched(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def assert_refused(outcome, said):
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    for fragment in said:
        assert fragment in outcome.sentence


@pytest.mark.parametrize("words", TRAIN)
def test_train_refuses_and_writes_nothing(bench, words):
    before = untouched(bench)
    assert_refused(softspike("train", *words.split(), "-o", "new", folder=bench), TRAIN[words])
    assert not (bench / "new").exists()
    assert untouched(bench) == before


# the same for the other commands, and for run folders that cannot be used
OTHERS = {
    "train good.npy -o trained": ["trained already holds a run", "--resume or choose another folder"],
    "train good.npy -o good.npy": ["good.npy is a file", "expected a folder", "choose another name"],
    "train narrow.npy -o trained --resume": ["narrow.npy is not the data that trained was trained on", "the same rows"],
    "encode trained narrow.npy -o new.npz": ["has 5 features", "was trained on 12", "give data of the kind"],
    "encode trained nan.npy -o new.npz": ["the first NaN at row 7, column 3"],
    "encode trained absent.npy -o new.npz": ["absent.npy: this does not exist"],
    "encode trained none.npy -o new.npz": ["has 0 samples", "expected at least 1"],
    "encode trained good.npy -o empty": ["empty is a folder", "expected a file for the codes", "add a name"],
    "encode future good.npy -o new.npz": ["has format 2", "reads format 1", "train again, or use the version"],
    "encode damaged good.npy -o new.npz": ["model.safetensors is damaged", "restore it or train again"],
    "encode empty good.npy -o new.npz": ["empty is not a run folder", "give the folder"],
    "evaluate trained narrow.npy": ["has 5 features", "was trained on 12", "give data of the kind"],
    "evaluate absent good.npy": ["absent is not a run folder", "give the folder"],
    "evaluate future good.npy": ["has format 2", "reads format 1"],
    "report trained --data narrow.npy": ["has 5 features", "was trained on 12", "give data of the kind"],
    "report trained --data absent.npy": ["absent.npy: this does not exist"],
    "report trained --data nan.npy": ["the first NaN at row 7, column 3"],
    "report absent": ["absent is not a run folder", "give the folder"],
    "report trained future": ["has format 2", "reads format 1"],
    "report damaged": ["model.safetensors is damaged", "restore it or train again"],
    "report trained -o empty": ["empty is a folder", "expected a file for the page", "add a name"],
    "report trained --serve --port 99999": ["cannot serve on port 99999", "choose another with --port"],
    "runs absent": ["absent is not a folder", "expected one that holds runs", "check the path"],
    "show empty": ["empty is not a run folder", "give the folder"],
    "demo -o trained --resume": ["trained is not a run of the demo", "softspike train DATA -o trained --resume"],
    "train good.npy -o new --log wandb": ["--log is 'wandb'", "expected one of: csv, tensorboard"],
    "demo -o new --steps 0": ["max_steps is 0", "expected a whole number ≥ 1"],
    "demo -o new --steps -3": ["max_steps is -3", "expected a whole number ≥ 1"],
    "data olshausen absent.mat": ["absent.mat: this does not exist"],
}


@pytest.mark.parametrize("words", OTHERS)
def test_other_commands_refuse_and_write_nothing(bench, words):
    before = untouched(bench)
    outcome = softspike(*words.split(), folder=bench)
    assert_refused(outcome._replace(out="") if words.startswith("data") else outcome, OTHERS[words])
    assert untouched(bench) == before


def test_a_run_that_another_process_is_training(bench):
    holder = RunFolder(bench / "trained").lock()
    before = untouched(bench)
    outcome = softspike("train", "good.npy", "-o", "trained", "--resume", folder=bench)
    assert_refused(outcome, ["trained is in use by another process", "wait for it or choose another folder"])
    assert {path: before[path] for path in before if path.name != ".lock"}.items() <= untouched(bench).items()
    del holder


@without_gpu
@pytest.mark.parametrize(
    "words", ["train good.npy -o new", "encode trained good.npy -o new.npz", "evaluate trained good.npy", "demo -o new"]
)
def test_a_gpu_that_is_not_there(bench, words):
    before = untouched(bench)
    outcome = softspike(*words.split(), "--device", "cuda", folder=bench)
    assert_refused(outcome, ["device is 'cuda'", "no GPU is available", "use device='cpu' or 'auto'"])
    assert untouched(bench) == before


def test_words_the_command_does_not_know():
    assert softspike("train", "x.npy", "-o", "new", "--sparseness", 0.1).code == 2
    assert softspike("trian").code == 2
    assert softspike("train", "x.npy").code == 2
    assert softspike("train", "x.npy", "-o", "new", "--steps", "many").code == 2


# ── the same through Python ──

WRONG = {
    "n_components": [0, -1, 2.5, "many", True],
    "sparsity": [0, 1, -0.1, 1.5, float("nan"), float("inf"), "much", None],
    "n_active": [0, -1, 25, float("nan"), "few", True],
    "max_steps": [0, 1.5, None],
    "batch_size": [0, -1],
    "n_samples": [0, 0.5],
    "learning_rate": [0, -1e-3, float("nan"), float("inf"), "slow"],
    "constant_features": ["drop", None],
    "method": ["hard-gausian", "", 3, None],
    "device": ["gpu", "cpu:x", "meta", "fpga"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WRONG for value in WRONG[name]])
@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
def test_wrong_parameters(name, value, verb):
    settings = {**QUICK, name: value} if name != "sparsity" else {**QUICK, "n_active": None, name: value}
    with pytest.raises(ValueError, match=rf"^{name} is ") as caught:
        getattr(SparseCoder(**settings), verb)(X)
    message = str(caught.value)
    assert "\n" not in message
    assert repr(value) in message or str(value) in message
    assert "expected" in message or "did you mean" in message or "use device='cpu'" in message


def spoiled(row, column, value):
    x = X.copy()
    x[row, column] = value
    return x


WRONG_DATA = {
    "one dimension": (X[0], r"shape \(12,\), expected \(n_samples, n_features\); Reshape your data"),
    "three dimensions": (X[None], r"shape \(1, 64, 12\), expected \(n_samples, n_features\); flatten"),
    "a tensor of one dimension": (torch.from_numpy(X[0]), r"shape \(12,\), expected \(n_samples, n_features\)"),
    "a list of one dimension": (X[0].tolist(), r"shape \(12,\), expected \(n_samples, n_features\)"),
    "a number": (torch.tensor(1.0), r"shape \(\), expected \(n_samples, n_features\); give an array"),
    "nothing": (None, r"shape \(\), expected \(n_samples, n_features\)"),
    "a single sample": (X[:1], "1 sample, expected at least 2"),
    "no sample": (X[:0], "0 sample"),
    "NaN": (spoiled(3, 4, np.nan), "first NaN at row 3, column 4"),
    "infinity": (spoiled(0, 0, np.inf), "first infinity at row 0, column 0"),
    "constant": (np.ones((8, 3)), "3 constant features of 3"),
    "words": (np.array([["a", "b"], ["c", "d"]]), "could not convert|numeric|dtype"),
    "complex": (X.astype(np.complex64), "Complex data not supported"),
    "complex tensor": (torch.zeros(4, 3, dtype=torch.complex64), "Complex data not supported"),
    "meta tensor": (torch.zeros(4, 3, device="meta"), "on the device 'meta', which holds no values"),
    "sparse tensor": (torch.from_numpy(X).to_sparse(), "layout sparse_coo, expected a dense one; give x.to_dense"),
    "four bits": (torch.zeros(4, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2), "float4.*expected real numbers"),
}


@pytest.mark.parametrize("case", WRONG_DATA)
def test_wrong_data(case):
    data, said = WRONG_DATA[case]
    coder = SparseCoder(max_steps=2)
    with pytest.raises(ValueError, match=said) as caught:
        coder.fit(data)
    assert "\n" not in str(caught.value)
    assert not hasattr(coder, "components_")


def test_wrong_data_for_a_fitted_coder():
    coder = SparseCoder(**QUICK, max_steps=2).fit(X)
    for use in (coder.transform, coder.score, coder.activation_probability, coder.partial_fit):
        with pytest.raises(ValueError, match="5 features, but SparseCoder is expecting 12"):
            use(X[:, :5])
        with pytest.raises(ValueError, match="first NaN at row 3, column 4"):
            use(spoiled(3, 4, np.nan))


SOLVERS = {
    "one dimension": (torch.zeros(5), torch.zeros(5, 3), r"shape \(5,\)"),
    "a number": (torch.tensor(1.0), torch.zeros(5, 3), r"shape \(\)"),
    "complex": (torch.zeros(4, 5) + 0j, torch.zeros(5, 3), "Complex data not supported"),
    "float8": (torch.zeros(4, 5).to(torch.float8_e4m3fn), torch.zeros(5, 3), "dtype is torch.float8_e4m3fn"),
    "integers": (torch.zeros(4, 5, dtype=torch.int64), torch.zeros(5, 3), "dtype is torch.int64"),
    "meta": (torch.zeros(4, 5, device="meta"), torch.zeros(5, 3), "on the device 'meta'"),
    "an array": (np.zeros((4, 5)), torch.zeros(5, 3), "x is a ndarray, expected a tensor"),
    "other width": (torch.zeros(4, 6), torch.zeros(5, 3), r"x is \(4, 6\) .* the atoms are \(5, 3\)"),
    "other dtype": (torch.zeros(4, 5).double(), torch.zeros(5, 3), "of one dtype"),
}


@pytest.mark.parametrize("case", SOLVERS)
def test_solvers_are_given_what_fits(case):
    x, atoms, said = SOLVERS[case]
    for solve in (lambda: lasso(x, atoms, 0.1), lambda: fista(x, atoms, 0.1), lambda: omp(x, atoms, 2)):
        with pytest.raises(ValueError, match=said) as caught:
            solve()
        assert "\n" not in str(caught.value)


def test_constant_features_can_be_kept():
    x = X.copy()
    x[:, 2] = 7.0
    coder = SparseCoder(**QUICK, max_steps=2, constant_features="keep").fit(x)
    np.testing.assert_allclose(coder.mean_[2], 7.0)
    everything = SparseCoder(3, max_steps=2, constant_features="keep").fit(np.ones((8, 3)))
    assert np.isfinite(everything.score(np.ones((8, 3))))


@without_gpu
def test_a_gpu_that_is_not_there_is_named_in_python(tmp_path):
    with pytest.raises(ValueError, match="device is 'cuda' but no GPU is available here; use device='cpu' or 'auto'"):
        SparseCoder(**QUICK, device="cuda").fit(X)
    SparseCoder(**QUICK, max_steps=2).fit(X).save(tmp_path)
    with pytest.raises(ValueError, match="no GPU is available here"):
        SparseCoder.load(tmp_path, device="cuda")


@pytest.mark.parametrize("name", METHODS)
def test_a_misspelled_method_is_answered_with_the_nearest(name):
    with pytest.raises(ValueError, match=f"did you mean '{name}'"):
        SparseCoder(method=name[:-1] + "x").fit(X)
