"""A fitted SparseCoder kept and fetched: pickle, joblib, a folder; and folders that are not fit to load."""

import json
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from small import quick, same_bits, small_data

from softspike import SparseCoder
from softspike.encoder import LinearEncoder
from softspike.generator import Dictionary
from softspike.methods import METHODS, Built
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import LaplacePosterior
from softspike.prior import LaplacePrior
from softspike.threshold import CentredSoft, FixedLevel, Threshold

X, UNSEEN = small_data(), small_data(4000, seed=1)


@pytest.fixture(scope="module")
def coder():
    return quick().fit(X)


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


def test_a_composed_model_object_is_a_method():
    """It is copied, not trained in place, and must fit the data it is given."""
    model = VariationalCoder(
        encoder=LinearEncoder(X.shape[1]),
        posterior=LaplacePosterior(X.shape[1], 24),
        prior=LaplacePrior(0.1),
        threshold=Threshold(CentredSoft, FixedLevel(0.2)),
        generator=Dictionary(X.shape[1], 24),
        objective=BestOf(3),
    )
    before = {name: value.clone() for name, value in model.state_dict().items()}
    coder = clone(quick(method=model, n_components=24, max_steps=3)).fit(X)
    assert coder.transform(X).shape == (len(X), 24)
    assert all(torch.equal(value, before[name]) or value.isnan() for name, value in model.state_dict().items())
    with pytest.raises(ValueError, match=r"\(n_features, n_components\) = .*, expected \("):
        quick(method=model, n_components=25, max_steps=3).fit(X)


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
