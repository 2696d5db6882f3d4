"""`softspike inspect`: what the components of a run stand for, drawn and told."""

import re

import numpy as np
import pytest
from command import softspike
from pictures import ATTRIBUTES, shapes, write_idx, write_mnist, write_parquet
from PIL import Image
from small import small_data

from softspike.report.captions import save_captioned
from softspike.report.pictures import contrast, grid

TRAIN = ["--generator", "conv", "--steps", 6, "--components", 10, "--batch", 32, "--samples", 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two runs on small colour images with attributes, and one that has no posterior."""
    place = tmp_path_factory.mktemp("inspect")
    write_parquet(place / "faces.parquet", 60)
    write_mnist(place / "digits", 40)
    write_mnist(place / "few", 40)
    write_idx(place / "few/train-labels-idx1-ubyte.gz", np.zeros(20))
    np.save(place / "rows.npy", small_data(120))
    for run, method in [("one", "thresholded-gaussian"), ("two", "gaussian")]:
        done = softspike("train", "faces.parquet", "-o", run, "--method", method, *TRAIN, folder=place)
        assert done.code == 0, done.err
    assert softspike("train", "digits", "-o", "grey", *TRAIN, folder=place).code == 0
    assert softspike("train", "rows.npy", "-o", "topk", "--method", "topk", "--steps", 4, folder=place).code == 0
    return place


def size(path):
    with Image.open(path) as image:
        image.load()
        return image.mode, image.size


def test_pictures_and_a_table(folder):
    done = softspike("inspect", "one", "faces.parquet", "--with", "two", "--components", "3,7", folder=folder)
    assert done.code == 0, done.err
    out = folder / "one/inspect"
    assert {path.name for path in out.iterdir()} == {
        "attributes.png", "dictionary.png", "reconstructions.png", "traversals.png"
    }  # fmt: skip
    for name in ATTRIBUTES:
        assert re.search(rf"attribute {name}: component \d+  \(r = [+-]0\.\d+(, not told from chance)?\)", done.out)
    assert re.search(r"by chance: \|r\| = 0\.\d+", done.out)
    assert "traversed: 3, 7" in done.out
    # two components by nine values, and the images above two models' reconstructions: all 8×8, two pixels apart
    (mode, (width, height)) = size(out / "traversals.png")
    assert mode == "RGB"
    assert width / height == pytest.approx((9 * 10 + 2) / (2 * 10 + 2))
    (_, (width, height)) = size(out / "reconstructions.png")
    assert width / height == pytest.approx((12 * 10 + 2) / (3 * 10 + 2))


@pytest.mark.parametrize("words", [[], ["--positive"], ["--method", "spike-and-slab"]])
def test_methods_whose_prior_speaks_of_the_codes(folder, words):
    """The default one among them."""
    out = f"codes {' '.join(words)}"
    given = ["--steps", 3, "--components", 10, "--samples", 3, *words]
    assert softspike("train", "rows.npy", "-o", out, *given, folder=folder).code == 0
    done = softspike("inspect", out, "rows.npy", folder=folder)
    assert done.code == 0, done.err
    assert (folder / out / "inspect/reconstructions.png").exists()


def test_data_without_attributes(folder):
    done = softspike("inspect", "one", "faces.parquet", "-o", "plain", folder=folder)
    assert done.code == 0
    pixels, _ = shapes(30, channels=3)
    np.save(folder / "faces.npy", pixels / np.float32(255))
    done = softspike("inspect", "one", "faces.npy", "-o", "plain2", folder=folder)
    assert done.code == 0, done.err
    assert "attribute" not in done.out
    assert not (folder / "plain2/attributes.png").exists()


WRONG = {
    "few labels": (
        ["grey", "few"],
        "few: train-labels-idx1-ubyte.gz holds 20 labels and train-images-idx3-ubyte.gz 40",
    ),
    "other size": (["one", "digits"], "digits has 64 features, one was trained on 192"),
    "no posterior": (["topk", "rows.npy"], "topk was trained by 'topk', which has no posterior"),
    "no number": (["one", "faces.parquet", "--components", "x"], "--components is 'x', expected whole numbers"),
    "too large": (["one", "faces.parquet", "--components", "10"], "expected numbers from 0 to 9"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_inspected(folder, name):
    words, message = WRONG[name]
    done = softspike("inspect", *words, "-o", "nothing", folder=folder)
    assert done.code == 2
    assert message in done.sentence
    assert not (folder / "nothing").exists()


def test_a_grid_shows_images_as_they_are():
    images = np.random.default_rng(0).random((5, 4 * 4 * 3))
    picture = grid([images[:3], images[3:]], (4, 4, 3), gap=1)
    assert picture.shape == (11, 16, 3)
    np.testing.assert_allclose(picture[1:5, 6:10], images[1].reshape(4, 4, 3))
    np.testing.assert_allclose(picture[6:10, 1:5], images[3].reshape(4, 4, 3))
    assert (picture[6:, 11:] == 1).all()  # the short row ends in white
    assert grid([images[:, :16]], (4, 4)).ndim == 2


def test_contrast_keeps_zero_in_the_middle():
    shown = contrast(np.array([[-2.0, 0, 1], [0, 0, 0], [3, 1, 0]]))
    np.testing.assert_allclose(shown, [[0, 0.5, 0.75], [0.5, 0.5, 0.5], [1, 0.5 + 1 / 6, 0.5]])


def test_captions_have_room(tmp_path):
    save_captioned(tmp_path / "x.png", np.full((3, 64), 0.5), ["a", "b\nc", "d"], (8, 8), columns=2)
    with Image.open(tmp_path / "x.png") as image:
        pixels = np.asarray(image.convert("L"))
    assert (pixels < 100).any()  # words
    assert 0 <= (pixels == 128).sum() - 3 * 96 * 96 < 50  # all of the images, and an edge or two of a letter
