"""The whitened images are recognised by their statistics: a stand-in with the same ones is accepted, others are not."""

import numpy as np
import pytest
from scipy.io import savemat

from softspike.data import DataError, load_olshausen, olshausen_patches, whiten
from softspike.data.olshausen import EXPLANATION


@pytest.fixture(scope="module")
def stand_in():
    """Ten whitened noise images with the mean, variance and range of the real ones."""
    random = np.random.default_rng(0)
    images = np.stack([whiten(random.normal(size=(512, 512))) for _ in range(10)]) * np.sqrt(0.0791)
    images = np.clip(images, -2.03, 2.86)
    images[0, 100, 100], images[0, 300, 300] = -2.03, 2.86
    return (images - images.mean(axis=(1, 2), keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def path(stand_in, tmp_path_factory):
    path = tmp_path_factory.mktemp("olshausen") / "images.npy"
    np.save(path, stand_in)
    return path


def test_npy_and_mat_give_the_same_images(stand_in, path, tmp_path):
    savemat(tmp_path / "IMAGES.mat", {"IMAGES": np.moveaxis(stand_in, 0, -1).astype(np.float64)})
    np.testing.assert_array_equal(load_olshausen(path), stand_in)
    np.testing.assert_array_equal(load_olshausen(tmp_path / "IMAGES.mat"), stand_in)


BAD = [
    (
        lambda x: x[:9],
        "holds an array of shape (9, 512, 512), expected (10, 512, 512) or (512, 512, 10); give IMAGES.mat",
    ),
    (lambda x: x.reshape(10, -1), "holds an array of shape (10, 262144), expected (10, 512, 512)"),
    (lambda x: 1.1 * x, "is not the whitened set: largest mean "),
    (
        lambda x: x + 0.005,
        "largest mean 0.005, mean variance 0.0791, range -2.03 to 2.86, expected 0, 0.0791, -2.03 to 2.86",
    ),
    (
        lambda x: np.clip(x, -1.5, 2.86),
        "range -1.5 to 2.86, expected 0, 0.0791, -2.03 to 2.86; download IMAGES.mat, not",
    ),
    (lambda x: np.where(x > 2, np.nan, x), "range nan to nan"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_other_images_get_one_sentence(stand_in, tmp_path, change, message):
    np.save(tmp_path / "other.npy", change(stand_in))
    with pytest.raises(DataError) as caught:
        load_olshausen(tmp_path / "other.npy")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "other.npy"))
    assert "\n" not in str(caught.value)


def test_patches_are_standardised_per_pixel_with_training_statistics(path):
    train, valid = olshausen_patches(path, n_train=4000, n_valid=1000, size=8, seed=0)
    assert (train.shape, valid.shape) == ((4000, 64), (1000, 64))
    assert train.dtype == valid.dtype == np.float32
    np.testing.assert_allclose(train.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(train.std(0), 1, rtol=1e-5)
    assert np.square(train).sum(1).mean() == pytest.approx(64, rel=1e-5)
    assert np.abs(valid.mean(0)).max() > 1e-3  # its own statistics were not used
    assert np.square(valid).sum(1).mean() == pytest.approx(64, rel=0.05)


def test_no_validation_patch_is_a_training_patch(path):
    train, valid = olshausen_patches(path, n_train=3000, n_valid=1000, size=4)
    assert len({patch.tobytes() for patch in (*train, *valid)}) == 4000


def test_the_explanation_says_whence_and_on_what_terms():
    for word in ("Olshausen", "1996", "IMAGES.mat", "http", "not for redistribution", "0.0791", "−2.03 to 2.86"):
        assert word in EXPLANATION
    assert max(map(len, EXPLANATION.splitlines())) <= 120
