"""Folders of images become rows of pixels in [0, 1]; an odd or broken image is named."""

import numpy as np
import pytest
import torch
from PIL import Image

from softspike.data import DataError, read_rows

RANDOM = np.random.default_rng(4)
GREY = RANDOM.integers(0, 256, (3, 5, 4), dtype=np.uint8)
COLOUR = RANDOM.integers(0, 256, (3, 5, 4, 3), dtype=np.uint8)
DEEP = RANDOM.integers(0, 65536, (3, 5, 4), dtype=np.uint16)


def save(folder, images, suffix, **options):
    for number, image in enumerate(images):
        (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(
            folder / f"{number}{suffix}", **options
        )


def all_of(rows):
    return rows.take(torch.arange(len(rows))).numpy()


@pytest.mark.parametrize(
    ("images", "suffix", "options"),
    [
        (GREY, ".png", {}),
        (GREY, ".bmp", {}),
        (GREY, ".tif", {}),
        (COLOUR, ".png", {}),
        (COLOUR, ".PNG", {}),
        (COLOUR, ".tiff", {}),
        (COLOUR, ".webp", {"lossless": True}),
        (DEEP, ".png", {}),
        (DEEP, ".tif", {}),
    ],
)
def test_lossless_images_round_trip(tmp_path, images, suffix, options):
    save(tmp_path, images, suffix, **options)
    rows = read_rows(tmp_path)
    assert rows.image_shape == images.shape[1:]
    white = np.float32(np.iinfo(images.dtype).max)
    np.testing.assert_allclose(all_of(rows), images.reshape(3, -1).astype(np.float32) / white, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg"])
def test_jpeg_is_close(tmp_path, suffix):
    smooth = np.tile(np.arange(0, 256, 16, dtype=np.uint8), (16, 1))
    save(tmp_path, [smooth, smooth], suffix, quality=95)
    np.testing.assert_allclose(all_of(read_rows(tmp_path))[0], smooth.reshape(-1) / 255, atol=0.02)


def test_other_modes_are_converted(tmp_path):
    modes = [Image.fromarray(COLOUR[0]).convert(mode) for mode in ("RGB", "RGBA", "CMYK")]
    save(tmp_path, [modes[0], modes[1]], ".png")
    modes[2].save(tmp_path / "2.tif")
    pixels = all_of(read_rows(tmp_path))
    np.testing.assert_array_equal(pixels[0], pixels[1])
    np.testing.assert_allclose(pixels[0], pixels[2], atol=2 / 255)


def test_files_are_in_the_order_of_their_names_and_others_are_left_out(tmp_path):
    save(tmp_path, GREY, ".png")
    (tmp_path / "0.png").rename(tmp_path / "z.png")
    (tmp_path / "readme.txt").write_text("not an image")
    (tmp_path / ".hidden.png").write_text("not an image")
    (tmp_path / "folder.png").mkdir()
    np.testing.assert_array_equal(all_of(read_rows(tmp_path))[2], GREY[0].reshape(-1).astype(np.float32) / 255)


BAD = [
    (
        [GREY[0], GREY[1, :4]],
        "1.png is 4×4 grey of 8 bits and 0.png is 5×4 grey of 8 bits, expected images of one size",
    ),
    ([COLOUR[0], GREY[0]], "1.png is 5×4 grey of 8 bits and 0.png is 5×4 colour of 8 bits"),
    ([GREY[0], DEEP[0]], "1.png is 5×4 grey of 16 bits"),
]


@pytest.mark.parametrize(("images", "message"), BAD)
def test_an_odd_image_is_named(tmp_path, images, message):
    save(tmp_path, images, ".png")
    assert_refused(tmp_path, message)


def test_a_broken_image_is_named(tmp_path):
    save(tmp_path, GREY, ".png")
    whole = (tmp_path / "1.png").read_bytes()
    for content in (b"", b"not an image", whole[: len(whole) // 2]):
        (tmp_path / "1.png").write_bytes(content)
        assert_refused(tmp_path, "1.png could not be decoded as an image (")


def test_floating_point_pixels_are_refused(tmp_path):
    save(tmp_path, [GREY[0].astype(np.float32)], ".tif")
    assert_refused(tmp_path, "0.tif has float32 pixels, expected 8-bit or 16-bit ones")


def test_two_kinds_of_data_are_refused(tmp_path):
    save(tmp_path, GREY, ".png")
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    assert_refused(tmp_path, "the folder holds 1 .npy shards and 3 images, expected either")


def assert_refused(folder, message):
    with pytest.raises(DataError) as caught:
        read_rows(folder)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)
