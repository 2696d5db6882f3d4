"""Whitening flattens a 1/f spectrum; patches are pieces of the images at distinct places."""

import socket
from importlib import import_module

import numpy as np
import pytest

from softspike.data import DataError, extract_patches, photograph_patches, photographs, whiten
from softspike.data.patches import draw_positions, patches_at


def coloured_noise(shape, exponent, seed=0):
    """Random phases with the amplitude f^exponent."""
    f = np.hypot(np.fft.fftfreq(shape[0])[:, None], np.fft.rfftfreq(shape[1])[None])
    f[0, 0] = np.inf if exponent < 0 else 1
    noise = np.fft.rfft2(np.random.default_rng(seed).normal(size=shape))
    return np.fft.irfft2(noise / np.abs(noise) * f**exponent, s=shape)


def spectral_slope(image, low=0.02, high=0.15):
    """The slope of log amplitude against log frequency, over a band in cycles per pixel."""
    f = np.hypot(np.fft.fftfreq(image.shape[0])[:, None], np.fft.rfftfreq(image.shape[1])[None])
    band = (f > low) & (f < high)
    return np.polyfit(np.log(f[band]), np.log(np.abs(np.fft.rfft2(image))[band]), 1)[0]


@pytest.mark.parametrize("shape", [(256, 256), (200, 301), (301, 200)])
def test_whitening_flattens_one_over_f(shape):
    image = 7 + 3 * coloured_noise(shape, -1)
    assert spectral_slope(image) == pytest.approx(-1, abs=1e-6)
    white = whiten(image)
    assert white.shape == shape
    assert spectral_slope(white) == pytest.approx(0, abs=0.05)
    assert white.mean() == pytest.approx(0, abs=1e-12)
    assert white.var() == pytest.approx(1)


def test_the_filter_is_the_one_documented():
    """White noise comes out with the amplitude R(f) = f·exp(−(f/f₀)⁴), f in cycles per picture, f₀ = 0.4·N."""
    n = 64
    noise = coloured_noise((n, n), 0)
    f = n * np.hypot(np.fft.fftfreq(n)[:, None], np.fft.fftfreq(n)[None])
    gain = np.fft.fft2(whiten(noise)) / np.fft.fft2(noise)
    expected = f * np.exp(-((f / (0.4 * n)) ** 4))
    np.testing.assert_allclose(gain / gain[0, 8], expected / expected[0, 8], atol=1e-9)


def test_whitening_does_not_depend_on_brightness_or_contrast():
    image = coloured_noise((40, 50), -1)
    np.testing.assert_allclose(whiten(5 - 0.1 * image), -whiten(image), atol=1e-9)


IMAGES = [np.arange(12 * 15).reshape(12, 15), 1000 + np.arange(9 * 20).reshape(9, 20)]


def test_patches_are_windows_of_the_images_inside_the_border():
    patches = extract_patches(IMAGES, 90, 4, seed=0, border=1)
    windows = {
        image[r : r + 4, c : c + 4].astype(np.float32).tobytes()
        for image in IMAGES
        for r in range(1, image.shape[0] - 4)
        for c in range(1, image.shape[1] - 4)
    }
    assert patches.shape == (90, 16)
    assert patches.dtype == np.float32
    found = {patch.tobytes() for patch in patches}
    assert len(found) == 90  # all distinct
    assert found <= windows
    assert len(windows) == 130
    assert {p.tobytes() for p in extract_patches(IMAGES, 130, 4, seed=1, border=1)} == windows


def test_patches_are_a_function_of_the_seed():
    first, again, other = (extract_patches(IMAGES, 30, 3, seed, border=1) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_positions_are_uniform_over_the_images():
    """The share of each image is its share of positions, within 4 standard deviations."""
    images = [np.zeros((60, 60)), np.zeros((100, 100))]
    share = np.mean(draw_positions(images, 2000, 8, seed=0, border=0) < 53**2)
    expected = 53**2 / (53**2 + 93**2)
    assert share == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 2000))


def test_a_stack_of_images_is_as_good_as_a_list():
    stack = np.random.default_rng(0).normal(size=(3, 20, 20))
    positions = draw_positions(stack, 25, 5, seed=0)
    np.testing.assert_array_equal(patches_at(stack, positions, 5), patches_at(list(stack), positions, 5))


BAD = [
    (
        lambda: whiten(np.zeros((3, 4, 3))),
        "the image has shape (3, 4, 3), expected (height, width); convert it to grey",
    ),
    (lambda: whiten(np.ones((8, 8))), "the image is constant or not finite, expected one with contrast"),
    (
        lambda: extract_patches(IMAGES, 5, 4, 0),
        "5 patches of 4×4 were asked for, the images have 4 positions; ask for fewer",
    ),
    (lambda: extract_patches(IMAGES, 1, 40, 0), "1 patches of 40×40 were asked for, the images have 0 positions"),
    (lambda: extract_patches(np.zeros((9, 9)), 1, 2, 0), "expected (height, width) each"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_input_gets_one_sentence(make, message):
    with pytest.raises(DataError) as caught:
        make()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_photographs_are_ten_grey_pictures_without_a_network():
    pictures = photographs()
    assert len(pictures) == 10
    assert all(p.ndim == 2 and p.min() >= 0 and p.max() <= 1 and np.ptp(p) > 0.5 for p in pictures)


def test_photograph_patches():
    train, valid = photograph_patches(3000, 500, size=8, seed=3)
    assert (train.shape, valid.shape) == ((3000, 64), (500, 64))
    assert train.dtype == valid.dtype == np.float32
    assert train.var() == pytest.approx(1, abs=0.25)  # of whole images it is 1
    again, other = photograph_patches(3000, 500, size=8, seed=3), photograph_patches(3000, 500, size=8, seed=4)
    np.testing.assert_array_equal(train, again.train)
    np.testing.assert_array_equal(valid, again.valid)
    assert not np.array_equal(train, other.train)


@pytest.mark.parametrize("size", [8, 16])
def test_unseen_photographs_are_of_the_same_kind(size):
    """Energies within 3 %: by bands instead of blocks, unseen patches had up to 15 % more or less."""
    train, valid = photograph_patches(40_000, 16_000, size=size)
    for mean in (np.mean, lambda e: np.sqrt(e).mean(), lambda e: np.exp(np.log(e + 0.01).mean())):
        seen, unseen = (mean(np.square(part).mean(-1)) for part in (train, valid))
        assert unseen == pytest.approx(seen, rel=0.03)


def test_training_and_validation_photographs_share_no_pixel(monkeypatch):
    """With every pixel a number of its own, no number is on both sides."""
    pictures = [np.arange(120 * 140).reshape(120, 140), 50_000 + np.arange(197 * 90).reshape(197, 90)]
    module = import_module("softspike.data.photographs")
    monkeypatch.setattr(module, "photographs", lambda: pictures)
    monkeypatch.setattr(module, "whiten", lambda image: image)
    train, valid = photograph_patches(1500, 20, size=3)
    assert not np.isin(valid, train).any()
