"""Decoding happens once; a changed source, a damaged cache or a full disk only cost the time to decode again."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from command import softspike
from pictures import shapes, write_celeba, write_parquet
from PIL import Image

from softspike.data import ArrayRows, DataError, PixelRows, Watch, images, read_rows
from softspike.data.cache import cache_folder, remembered
from softspike.data.device import DevicePixels, on_device

PIXELS = shapes(5, channels=3)[0]


class Maker:
    """Fills what it is given and counts."""

    def __init__(self, pixels=PIXELS):
        self.pixels, self.calls = pixels, 0

    def __call__(self, allocate):
        self.calls += 1
        array = allocate(self.pixels.shape, self.pixels.dtype)
        array[:] = self.pixels
        return array


def test_made_once(tmp_path):
    make = Maker()
    for _ in range(2):
        np.testing.assert_array_equal(remembered({"a": 1}, make, tmp_path), PIXELS)
    assert make.calls == 1
    assert isinstance(remembered({"a": 1}, make, tmp_path), np.memmap)
    remembered({"a": 2}, make, tmp_path)
    assert make.calls == 2
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npy", ".npy", ".sha256", ".sha256"]


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "bit":
        content[-3] ^= 1
    path.write_bytes(bytes(content[:-100] if how == "cut" else content))


@pytest.mark.parametrize("how", ["bit", "cut"])
def test_a_damaged_file_is_made_again(tmp_path, how):
    make = Maker()
    remembered({}, make, tmp_path)
    damage(next(tmp_path.glob("*.npy")), how)
    np.testing.assert_array_equal(remembered({}, make, tmp_path), PIXELS)
    assert make.calls == 2


def test_without_a_checksum_it_is_made_again(tmp_path):
    make = Maker()
    remembered({}, make, tmp_path)
    next(tmp_path.glob("*.sha256")).unlink()
    remembered({}, make, tmp_path)
    assert make.calls == 2


def test_a_failure_leaves_nothing(tmp_path):
    def broken(allocate):
        allocate(PIXELS.shape, PIXELS.dtype)
        raise DataError("image 3 is broken")

    with pytest.raises(DataError, match="image 3"):
        remembered({}, broken, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("reason", ["no folder", "no room"])
def test_where_nothing_can_be_written_it_is_made_in_memory(tmp_path, monkeypatch, reason):
    folder = tmp_path / "cache"
    if reason == "no folder":
        folder.write_text("a file is in the way")
    else:
        monkeypatch.setattr(os, "posix_fallocate", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    array = remembered({}, Maker(), folder)
    np.testing.assert_array_equal(array, PIXELS)
    assert not isinstance(array, np.memmap)
    assert not list(tmp_path.glob("cache/*"))


class Told(Watch):
    """Keeps what it is told."""

    def __init__(self):
        self.of_images, self.of_files = [], []

    def decoded(self, done, total):
        self.of_images.append((done, total))

    def kept(self, path, n_bytes):
        self.of_files.append((path, n_bytes))


@pytest.mark.parametrize("kind", ["folder", "parquet", "celeba"])
def test_large_sets_are_kept(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(images, "_WORTH_KEEPING", 4)
    monkeypatch.setenv("SOFTSPIKE_CACHE", str(tmp_path / "cache"))
    place = tmp_path / {"folder": "set", "parquet": "set.parquet", "celeba": "set"}[kind]
    if kind == "folder":
        place.mkdir()
        for number, image in enumerate(PIXELS):
            Image.fromarray(image).save(place / f"{number}.png")
    elif kind == "parquet":
        write_parquet(place, 5)
    else:
        write_celeba(place)
    told = Told()
    first = read_rows(place, watch=told)
    (kept,) = cache_folder().glob("*.npy")
    assert told.of_files == [(kept, kept.stat().st_size)]
    told = Told()
    again = read_rows(place, watch=told)
    assert told.of_images == told.of_files == []  # nothing was decoded
    everything = torch.arange(len(first))
    torch.testing.assert_close(again.take(everything), first.take(everything), rtol=0, atol=0)
    changed = next(place.rglob("*.*g")) if place.is_dir() else place
    os.utime(changed, ns=(1, 1))
    read_rows(place, watch=told)
    assert told.of_images == [(number + 1, len(first)) for number in range(len(first))]


def test_a_command_says_what_it_keeps(tmp_path):
    """Once, where and how much: 2,048 images of 8×8 bytes and the header of their file."""
    write_parquet(tmp_path / "many.parquet", 2048, channels=1)
    words = ["--method", "topk", "--steps", 2, "--components", 8, "--constant-features", "keep"]
    first = softspike("train", "many.parquet", "-o", "one", *words, folder=tmp_path)
    assert first.code == 0, first.err
    (line,) = re.findall(r"kept 0\.1 MB of decoded images in (.*\.npy) for the next time; it may be deleted", first.err)
    assert Path(line).parent == cache_folder()
    assert Path(line).stat().st_size == 2048 * 64 + 128
    Path(line).unlink()
    again = softspike("evaluate", "one", "many.parquet", folder=tmp_path)
    assert again.code == 0
    assert "kept 0.1 MB" in again.err
    assert "kept" not in softspike("evaluate", "one", "many.parquet", folder=tmp_path).err


def test_images_on_a_device_are_the_same_rows():
    pixels, chosen = PixelRows(PIXELS), torch.tensor([3, 0, 3], dtype=torch.int32)
    there = DevicePixels(torch.from_numpy(PIXELS))
    assert (len(there), there.n_features, there.image_shape) == (5, pixels.n_features, pixels.image_shape)
    torch.testing.assert_close(there.take(chosen), pixels.take(chosen), rtol=0, atol=0)
    assert on_device(pixels, "cpu") is pixels


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_small_sets_live_on_the_gpu():
    pixels, chosen = PixelRows(PIXELS), torch.tensor([3, 0])
    there = on_device(pixels, "cuda")
    assert isinstance(there, DevicePixels)
    torch.testing.assert_close(there.take(chosen).cpu(), pixels.take(chosen), rtol=0, atol=1e-7)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_small_arrays_live_on_the_gpu(tmp_path):
    """Not those of a mapped file, which may be larger than memory."""
    array, chosen = np.arange(12.0).reshape(4, 3), torch.tensor([3, 0], dtype=torch.int32)
    there = on_device(ArrayRows(array), "cuda")
    assert there.take(chosen).is_cuda
    torch.testing.assert_close(there.take(chosen).cpu(), ArrayRows(array).take(chosen), rtol=0, atol=0)
    np.save(tmp_path / "array.npy", array)
    mapped = ArrayRows(np.load(tmp_path / "array.npy", mmap_mode="r"))
    assert on_device(mapped, "cuda") is mapped
