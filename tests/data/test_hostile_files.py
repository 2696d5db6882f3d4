"""Files that promise terabytes, hide programs, or point outside their folder: refused, or read as plain data."""

import gzip
import io
import json
import resource
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from scipy.io import loadmat, savemat

from softspike.data import DataError, promise, read_labels, read_rows
from softspike.data.matlab import load_mat

MANY = 10**12


def npy(shape, dtype="<f8"):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(64)


def zipped(path, content, method=zipfile.ZIP_DEFLATED, name="x.npy"):
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, content)


def png(width, height):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(99))) + chunk(b"IEND", b"")
    )


def picture_folder(path, content, name="x.png"):
    path.mkdir()
    (path / name).write_bytes(content)


def mat(rows, packed):
    array = (
        struct.pack("<IIIIIIIII", 6, 8, 6, 0, 5, 8, rows, 1000, 0x00010001) + b"x\0\0\0" + struct.pack("<II", 9, 2**31)
    )
    element = struct.pack("<II", 14, 2**31) + array
    squeezed = zlib.compress(element)
    body = struct.pack("<II", 15, len(squeezed)) + squeezed if packed else element
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + body


SAFETENSORS = json.dumps({"x": {"dtype": "F64", "shape": [MANY, 8], "data_offsets": [0, 64 * MANY]}}).encode()

PROMISES = {
    "x.npy": lambda p: p.write_bytes(npy((MANY, 8))),
    "x.npz": lambda p: zipped(p, npy((MANY, 8))),
    "stored.npz": lambda p: zipped(p, npy((MANY, 8)), zipfile.ZIP_STORED),
    "x.mat": lambda p: p.write_bytes(mat(2**30, packed=False)),
    "packed.mat": lambda p: p.write_bytes(mat(2**30, packed=True)),
    "x-ubyte": lambda p: p.write_bytes(struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 2**16, 2**16)),
    "x.gz": lambda p: p.write_bytes(gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, 2**32 - 1, 2**16, 2**16))),
    "x.safetensors": lambda p: p.write_bytes(struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS + bytes(64)),
    "header.safetensors": lambda p: p.write_bytes(struct.pack("<Q", 2**62) + SAFETENSORS),
    "pictures": lambda p: picture_folder(p, png(2**16 - 1, 2**16 - 1)),
    "wide": lambda p: picture_folder(p, png(7000, 7000)),
}  # fmt: skip


@pytest.fixture
def little_memory():
    """Half a gigabyte beyond what is in use: a promise that is believed ends in a MemoryError."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**29, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("name", PROMISES)
def test_a_header_that_promises_terabytes(tmp_path, little_memory, name):
    PROMISES[name](tmp_path / name)
    with pytest.raises(DataError) as caught:
        read_rows(tmp_path / name)
    assert not isinstance(caught.value.__cause__, MemoryError)
    assert str(caught.value).startswith(str(tmp_path / name))


def idx(n_rows):
    return struct.pack(">BBBBII", 0, 0, 8, 2, n_rows, 2**10)


def picture_of_zeros(path):
    path.mkdir()
    Image.new("RGB", (2**11, 2**11)).save(path / "x.png")


ZEROS = {
    "x.gz": lambda p: p.write_bytes(gzip.compress(idx(2**14) + bytes(2**24))),
    "x.npz": lambda p: np.savez_compressed(p, x=np.zeros((2**14, 2**10), np.uint8)),
    "x.mat": lambda p: savemat(p, {"x": np.zeros((2**14, 2**7))}, do_compression=True),
    "x.parquet": lambda p: pd.DataFrame({"x": np.zeros(2**21)}).to_parquet(p, use_dictionary=False, compression="zstd"),
    "pictures": picture_of_zeros,
}


@pytest.mark.parametrize("name", ZEROS)
def test_zeros_that_swell(tmp_path, monkeypatch, name):
    """They are read while they are harmless, and refused before they are unpacked where they are not."""
    ZEROS[name](tmp_path / name)
    assert not np.asarray(read_rows(tmp_path / name).take(torch.arange(1))).any()
    monkeypatch.setattr(promise, "_HARMLESS", 2**20)
    with pytest.raises(DataError, match=r"would take \d\.\d+e\+0[67] bytes but the file holds \d+, expected at most"):
        read_rows(tmp_path / name)


def test_a_small_file_of_many_zeros(tmp_path, little_memory):
    """1.7 GB in seven million bytes."""
    parts = [gzip.compress(idx(25 * 2**16)), *[gzip.compress(bytes(2**26), 1)] * 25]
    (tmp_path / "x.gz").write_bytes(b"".join(parts))
    with pytest.raises(DataError, match=r"x\.gz would take 1\.68e\+09 bytes"):
        read_rows(tmp_path / "x.gz")


def test_many_compressed_arrays_count_together(tmp_path, monkeypatch):
    monkeypatch.setattr(promise, "_HARMLESS", 2**21)
    savemat(tmp_path / "x.mat", {name: np.zeros((2**11, 2**6)) for name in "abcd"}, do_compression=True)
    with pytest.raises(DataError, match="what is compressed in it would take"):
        read_rows(tmp_path / "x.mat", "a")


def test_a_photograph_of_a_phone(tmp_path):
    Image.effect_noise((5712, 4284), 50).save(tmp_path / "x.jpg", quality=50)
    rows = read_rows(tmp_path)
    assert rows.n_features == 5712 * 4284
    assert rows.image_shape == (4284, 5712)


def test_a_table_that_swells(tmp_path, monkeypatch):
    """Equal values take next to no room in parquet: what they would become is looked at first."""
    pd.DataFrame({"a": np.zeros(2_000_000)}).to_parquet(tmp_path / "x.parquet")
    assert len(read_rows(tmp_path / "x.parquet")) == 2_000_000
    monkeypatch.setattr(promise, "_HARMLESS", 1000)
    size = (tmp_path / "x.parquet").stat().st_size
    with pytest.raises(
        DataError, match=rf"a table of 2000000 × 1 would take 1\.6e\+07 bytes but the file holds {size}"
    ):
        read_rows(tmp_path / "x.parquet")


def test_rows_that_are_announced_must_be_there(tmp_path, monkeypatch):
    """Otherwise the rest of the matrix would be whatever was in that memory before."""
    pd.DataFrame({"a": np.arange(5.0)}).to_parquet(tmp_path / "x.parquet")
    whole = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **o: (b.slice(0, 3) for b in whole(*a, **o)))
    with pytest.raises(DataError, match="there are 3 rows where 5 were announced"):
        read_rows(tmp_path / "x.parquet")


def test_an_archive_cannot_reach_outside(tmp_path):
    folder = tmp_path / "inner"
    folder.mkdir()
    good = io.BytesIO()
    np.save(good, np.ones((4, 3)))
    zipped(folder / "x.npz", good.getvalue(), name="../../evil.npy")
    assert len(read_rows(folder / "x.npz")) == 4
    assert [path.name for path in tmp_path.rglob("*")] == ["inner", "x.npz"]


def test_an_unusual_packing_is_refused(tmp_path):
    """bzip2 and LZMA expand without bound."""
    zipped(tmp_path / "x.npz", npy((8, 1)), zipfile.ZIP_BZIP2)
    with pytest.raises(DataError, match="packed in a way that numpy does not use"):
        read_rows(tmp_path / "x.npz")


def test_a_picture_that_is_a_program(tmp_path):
    """PostScript under the name of a picture: Pillow would hand it to an interpreter."""
    program = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
    picture_folder(tmp_path / "eps", program, "x.png")
    assert Image.open(tmp_path / "eps/x.png").format == "EPS"
    with pytest.raises(DataError, match="could not be decoded as an image"):
        read_rows(tmp_path / "eps")


def test_classes_without_end(tmp_path):
    pd.DataFrame({"x": [0.5, 1.0], "label": [0, 2**40]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match="the classes run from 0 to 1099511627776, expected numbers from 0 to 4095"):
        read_labels(tmp_path / "x.parquet")


CUT = """
import os, sys, torch
from softspike.data import arrays, matlab, read_rows
from softspike.inference.coding import _batches
small = sys.argv[1] == "small"
for path in sys.argv[2:]:
    if not small:
        arrays.SMALL = matlab.SMALL = 0  # as if they were long
    rows = read_rows(path)
    rows.take(torch.arange(3))
    os.truncate(path, 4096)
    last = torch.arange(9000, 9990)
    for use in (lambda: rows.take(last), lambda: rows.original(9999), lambda: list(_batches(rows, 99))):
        try:
            print(path, len(use()))
        except ValueError as error:
            print(path, error)
"""


@pytest.mark.parametrize("size", ["small", "large"])
def test_a_file_that_is_cut_short_while_it_is_read(tmp_path, size):
    """Where it is mapped, reading on would end the process without a word; what is small is not mapped."""
    x = np.zeros((10_000, 16))
    np.save(tmp_path / "x.npy", x)
    savemat(tmp_path / "x.mat", {"x": x})
    save_file({"x": torch.from_numpy(x)}, tmp_path / "x.safetensors")
    files = [str(tmp_path / f"x{suffix}") for suffix in (".npy", ".mat", ".safetensors")]
    done = subprocess.run([sys.executable, "-c", CUT, size, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert [path for path, _ in told] == [path for path in files for _ in range(3)]
    for path, said in told:
        cut = said.startswith("the file became shorter while it was read (it has 4096 of 1280")
        assert cut == (size == "large" or path.endswith(".npy")), (path, said)


KINDS = ["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "bool"]
SHAPES = [(3, 4), (2, 3, 5), (1, 1), (0, 3), (7, 1)]


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
@pytest.mark.parametrize("kind", KINDS)
def test_matlab_files_as_scipy_reads_them(tmp_path, kind, options):
    """scipy is the reference where a file is whole; it is not used, as it does not survive those that are broken."""
    old = "format" in options
    if old and kind in ("i1", "i8", "u8", "u4", "bool"):
        pytest.skip("version 4 has no such numbers")
    for shape in (shape for shape in SHAPES if not (old and len(shape) > 2)):
        array = (100 * np.random.default_rng(0).random(shape)).astype(kind)
        others = {"t": "text", "z": array * 1j} | ({} if old else {"s": {"x": array}, "c": np.array([1, "a"], object)})
        savemat(tmp_path / "x.mat", {"a_longer_name": array, **others}, **options)
        found = load_mat(tmp_path / "x.mat")
        assert list(found) == ["a_longer_name"]
        np.testing.assert_array_equal(found["a_longer_name"], loadmat(tmp_path / "x.mat")["a_longer_name"])
