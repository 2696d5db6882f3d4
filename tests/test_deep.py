"""Deep generators through the public doors: the estimator and the command line."""

import json
import pickle

import numpy as np
import pytest
import torch
from command import softspike
from pictures import shapes, write_celeba, write_mnist, write_parquet
from PIL import Image
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from softspike import SparseCoder
from softspike.encoder import ConvEncoder, MLPEncoder
from softspike.generator import ConvGenerator, Generator
from softspike.methods import DEEP_METHODS, ConvNetworks, Networks, adam_recipe
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import GaussianPosterior
from softspike.prior import NormalPrior

PIXELS, _ = shapes(200)
X = (PIXELS.reshape(len(PIXELS), -1) / np.float32(255)).astype(np.float32)


def coder(**changes):
    options = {
        "n_components": 12, "n_active": 3, "method": "centred-gaussian", "generator": "conv", "batch_size": 32,
        "n_samples": 3, "max_steps": 10, "random_state": 0, "device": "cpu",
    }  # fmt: skip
    return SparseCoder(**{**options, **changes})


@pytest.mark.parametrize("method", sorted(DEEP_METHODS))
def test_every_deep_method_fits_codes_and_decodes(method, tmp_path):
    fitted = coder(method=method).fit(X)
    codes = fitted.transform(X)
    assert codes.shape == (200, 12)
    if method not in ("gaussian", "laplacian"):  # dense
        assert codes.nnz / 200 == pytest.approx(3, rel=0.35)
    decoded = fitted.inverse_transform(codes)
    assert decoded.shape == X.shape
    assert decoded.dtype == np.float32
    assert 0 <= decoded.min() <= decoded.max() <= 1
    np.testing.assert_allclose(fitted.inverse_transform(codes.toarray()), decoded, atol=1e-6)
    probability = fitted.activation_probability(X[:5])
    assert ((probability >= 0) & (probability <= 1)).all()
    fitted.save(tmp_path)
    again = SparseCoder.load(tmp_path, device="cpu")
    assert (again.transform(X) != codes).nnz == 0
    assert again.image_shape_ == (8, 8)


def test_training_helps():
    """Bars and blobs: better than the best constant image by far, and a longer run by more."""
    errors = []
    for steps in (10, 120):
        fitted = coder(method="gaussian", max_steps=steps, learning_rate=5e-3, beta=1e-4).fit(X)
        errors.append(float(np.square(X - fitted.inverse_transform(fitted.transform(X))).mean()))
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.3 * float(X.var(0).mean())
    assert fitted.score(X) == pytest.approx(1 - errors[1] / float(X.var(0).mean()), abs=1e-3)


def test_the_precision_of_the_codes_is_that_of_the_data():
    fitted = coder().fit(X)
    codes = fitted.transform(X.astype(np.float64))
    assert codes.dtype == np.float64
    assert fitted.inverse_transform(codes).dtype == np.float64


def test_a_stream_of_batches():
    fitted = coder(max_steps=50)
    for start in range(0, 200, 50):
        fitted.partial_fit(X[start : start + 50])
    assert fitted.transform(X).nnz / 200 == pytest.approx(3, rel=0.35)
    assert float(fitted.standardiser_.mean.abs().max()) == 0
    assert float(fitted.standardiser_.scale) == 1


def test_it_is_an_estimator():
    fitted = clone(coder()).fit(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.transform(X) != fitted.transform(X)).nnz == 0
    assert fitted.get_feature_names_out().shape == (12,)
    with pytest.raises(NotFittedError):
        coder().transform(X)


def test_components_of_a_deep_model_are_refused_with_a_hint():
    fitted = coder().fit(X)
    assert not hasattr(fitted, "components_")
    with pytest.raises(AttributeError, match=r"a deep generator has no components; .*estimated_dictionary"):
        fitted.components_  # noqa: B018


def test_networks_and_models_as_objects(tmp_path):
    by_name, by_object = coder().fit(X), coder(generator=ConvNetworks((8, 8))).fit(X)
    assert (by_name.transform(X) != by_object.transform(X)).nnz == 0
    with pytest.raises(ValueError, match="networks given as an object cannot be saved by name"):
        by_object.save(tmp_path)
    encoder = ConvEncoder((8, 8))
    posterior = GaussianPosterior(encoder.width, 12)
    composed = VariationalCoder(encoder, posterior, NormalPrior(0.1), ConvGenerator((8, 8), 12), BestOf(2))
    fitted = coder(method=composed, generator="dictionary").fit(X)
    assert float(fitted.standardiser_.scale) == 1  # left as it is, for a generator that gives shares
    assert fitted.transform(X).shape == (200, 12)


WRONG = {
    "generator": ({"generator": "cnov"}, X, "generator is 'cnov', expected one of dictionary, conv"),
    "method": ({"method": "hard-gaussian"}, X, "'hard-gaussian' needs a dictionary, .* use one of: centred-gaussian"),
    "precision": ({"precision": "half"}, X, "precision is 'half', expected one of auto, float32, bfloat16, float16"),
    "shape": ({"image_shape": (8, 9)}, X, r"image_shape is \(8, 9\), which has 72 pixels, but the data has 64"),
    "no square": ({}, X[:, :60], "the data has 60 features, which is no square .* give image_shape"),
    "size": ({"image_shape": (6, 6)}, X[:, :36], "the images are 6×6, expected a size that halves to 4, 5, 6 or 7"),
    "not square": ({"image_shape": (4, 16)}, X, r"the images have shape \(4, 16\), expected square ones"),
    "range": ({}, 255 * X, "the data runs from .* to .*, expected pixels from 0 to 1"),
    "negative": ({}, X - 0.5, "expected pixels from 0 to 1"),
    "NaN": ({}, np.where(X > 0.9, np.nan, X), "NaN or infinity"),
    "batch": ({"batch_size": 1}, X, "batch_size is 1, expected at least 2 for batch normalisation"),
    "beta": ({"beta": 0}, X, "beta is 0, expected a number > 0"),
    "mirrored": ({"mirrored": "yes"}, X, "mirrored is 'yes', expected True or False"),
    "mirrored rows": (
        {"mirrored": True, "generator": "dictionary"},
        X,
        "mirrored is True and generator 'dictionary', expected 'conv' to mirror images; leave it out",
    ),
    "mirrored twice": (
        {"mirrored": True, "generator": ConvNetworks((8, 8))},
        X,
        "mirrored is True and generator 'ConvNetworks'",
    ),
    "components": ({"n_components": 0}, X, "n_components is 0, expected a whole number"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used(name):
    changes, data, message = WRONG[name]
    for learn in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(coder(**changes), learn)(data)


# ── the command line ──

QUICK = ["--generator", "conv", "--steps", 6, "--components", 10, "--active", 2, "--batch", 32, "--samples", 3]
WRITTEN = {
    "config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "summary.json", "dictionary.png",
    "reconstructions.png",
}  # fmt: skip
SETS = {
    "fashion": (lambda path: write_mnist(path, 120, 40), ["--key", "test"], 40),
    "faces.parquet": (lambda path: write_parquet(path, 120, size=16), [], 120),
    "celeba": (lambda path: write_celeba(path, 30), ["--key", "valid"], 10),
}


@pytest.mark.parametrize("name", SETS)
def test_train_evaluate_and_encode(tmp_path, name):
    write, unseen, count = SETS[name]
    write(tmp_path / name)
    words = ["train", name, "-o", "run", "--method", "thresholded-gaussian", *QUICK]
    trained = softspike(*words, "--mirrored", "--beta", 1e-3, folder=tmp_path)
    assert trained.code == 0, trained.err
    run = tmp_path / "run"
    assert {path.name for path in run.iterdir()} - {".lock"} == WRITTEN
    for picture in ("dictionary.png", "reconstructions.png"):
        with Image.open(run / picture) as image:
            assert (image.mode == "L") == (name == "fashion")
            image.load()
    summary = json.loads((run / "summary.json").read_text())
    assert 0 < summary["sampled"]["best"] <= summary["sampled"]["one"]
    evaluated = softspike("evaluate", "run", name, *unseen, folder=tmp_path)
    assert evaluated.code == 0, evaluated.err
    for line in ("mean squared error", "error of the best of 3 draws", "error of one draw", "principal components"):
        assert line in evaluated.out
    assert "OMP" not in evaluated.out
    encoded = softspike("encode", "run", name, "-o", "codes.npz", *unseen, folder=tmp_path)
    assert encoded.code == 0, encoded.err
    assert sparse.load_npz(tmp_path / "codes.npz").shape == (count, 10)


def test_resume_on_the_command_line(tmp_path):
    write_mnist(tmp_path / "set", 120, 40)
    words = ["train", "set", "--method", "spike-and-slab", *QUICK, "--checkpoint-every", 3]
    assert softspike(*words, "-o", "whole", folder=tmp_path).code == 0
    assert softspike(*words, "-o", "run", folder=tmp_path).code == 0
    (tmp_path / "run/checkpoints/step-000000006.safetensors").unlink()
    (tmp_path / "run/model.safetensors").unlink()
    assert softspike("train", "set", "-o", "run", "--resume", folder=tmp_path).code == 0
    assert (tmp_path / "run/model.safetensors").read_bytes() == (tmp_path / "whole/model.safetensors").read_bytes()


# data, options → method and mirrored of the run; a dictionary keeps the library's own
DEFAULTS = {
    "faces": ("celeba", ["--generator", "conv"], "centred-gaussian", True),
    "faces as they are": ("celeba", ["--generator", "conv", "--no-mirrored"], "centred-gaussian", False),
    "clothes": ("fashion", ["--generator", "conv"], "centred-gaussian", False),
    "clothes mirrored": ("fashion", ["--config", "conv.json", "--mirrored"], "centred-gaussian", True),
    "a file": ("fashion", ["--config", "all.json"], "gaussian", True),
    "a dictionary": ("fashion", [], "hard-gaussian", False),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_the_command_takes_where_nothing_is_said(sets, name):
    data, options, method, mirrored = DEFAULTS[name]
    words = ["--steps", 2, "--components", 10, "--active", 2, "--samples", 2, "--checkpoint-every", 1]
    done = softspike("train", data, "-o", name, *options, *words, folder=sets)
    assert done.code == 0, done.err
    used = json.loads((sets / name / "config.json").read_text())["estimator"]
    assert (used["method"], used["mirrored"]) == (method, mirrored)
    if name != "faces as they are":  # nor are defaults put over what a stopped run has
        return
    (sets / name / "model.safetensors").unlink()
    (sets / name / "checkpoints/step-000000002.safetensors").unlink()
    assert softspike("train", data, "-o", name, "--resume", folder=sets).code == 0
    assert json.loads((sets / name / "config.json").read_text())["estimator"] == used


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Faces, clothes, arrays that are no images for a network, and files of parameters."""
    place = tmp_path_factory.mktemp("sets")
    write_celeba(place / "celeba", 9)
    write_mnist(place / "fashion", 40, 20)
    (place / "conv.json").write_text('{"generator": "conv"}')
    (place / "all.json").write_text('{"generator": "conv", "method": "gaussian", "mirrored": true}')
    np.save(place / "oblong.npy", np.zeros((20, 28, 30), np.float32))
    np.save(place / "odd.npy", np.zeros((20, 31, 31), np.float32))
    np.save(place / "flat.npy", np.zeros((20, 60), np.float32))
    np.save(place / "bytes.npy", PIXELS)
    return place


UNFIT = {
    "oblong": (["oblong.npy"], "oblong.npy: the images have shape (28, 30), expected square ones"),
    "31×31": (["odd.npy"], "odd.npy: the images are 31×31, expected a size that halves to 4, 5, 6 or 7"),
    "flat": (["flat.npy"], "flat.npy: the data has 60 features, which is no square grey or colour image"),
    "bytes": (["bytes.npy"], "bytes.npy: the data runs from 0 to 247, expected pixels from 0 to 1"),
    "mirrored": (
        ["bytes.npy", "--mirrored", "--generator", "dictionary"],
        "mirrored is True and generator 'dictionary'",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_data_that_does_not_fit_is_named(sets, name):
    words, message = UNFIT[name]
    done = softspike("train", *words[:1], "-o", "nothing", "--generator", "conv", *words[1:], folder=sets)
    assert done.code == 2
    assert done.sentence.startswith(f"softspike: {message}")
    assert not (sets / "nothing").exists()


def test_nothing_is_written_for_images_that_do_not_fit(tmp_path):
    (tmp_path / "mixed").mkdir()
    for number, size in enumerate([8, 8, 9]):
        Image.new("L", (size, size), 10 * number).save(tmp_path / f"mixed/{number}.png")
    outcome = softspike("train", "mixed", "-o", "run", "--method", "gaussian", *QUICK, folder=tmp_path)
    assert outcome.code == 2
    assert "2.png is 9×9 grey of 8 bits and 0.png is 8×8 grey of 8 bits" in outcome.sentence
    assert not (tmp_path / "run").exists()


def test_codes_have_exact_zeros():
    codes = coder(method="thresholded-laplacian").fit(X).transform(X).toarray()
    assert (codes == 0).any()
    assert torch.from_numpy(codes[codes != 0]).abs().min() > 0


class SmallNetworks(Networks):
    """A user's own: a perceptron both ways, for data of any range."""

    def encoder(self, plan):
        return MLPEncoder(plan.n_features, (20,))

    def generator(self, plan):
        return Bent(plan.n_features, plan.n_components)

    def recipe(self, plan):
        return adam_recipe(plan, 1e-3, 1e-3)


class Bent(Generator):
    """x̂ = B·tanh(Az)."""

    def __init__(self, n_features, n_components):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(n_components, 20), torch.nn.Tanh(), torch.nn.Linear(20, n_features)
        )
        self.sizes = n_features, n_components

    n_features = property(lambda self: self.sizes[0])
    n_components = property(lambda self: self.sizes[1])

    def forward(self, z):
        return self.layers(z)


def test_any_generator_will_do():
    data = 5 * np.random.default_rng(0).standard_normal((120, 10)) - 3
    fitted = coder(generator=SmallNetworks(), batch_size=20).fit(data)
    assert float(fitted.standardiser_.scale) > 3  # standardised, as it says nothing about shares
    assert fitted.inverse_transform(fitted.transform(data)).shape == data.shape
