"""Fashion-MNIST and CelebA in their official layouts, attributes beside images, and what is wrong with a broken one."""

import gzip
import struct

import numpy as np
import pandas as pd
import pytest
import torch
from pictures import ATTRIBUTES, shapes, write_celeba, write_idx, write_mnist, write_parquet
from PIL import Image

from softspike.data import DataError, read_labels, read_rows


def all_of(rows):
    return rows.take(torch.arange(len(rows))).numpy()


@pytest.mark.parametrize("suffix", [".gz", ""])
def test_mnist_folder(tmp_path, suffix):
    write_mnist(tmp_path / "fashion", 9, 5, suffix=suffix)
    for key, seed, n in [(None, 0, 9), ("train", 0, 9), ("test", 1, 5)]:
        images, classes = shapes(n, seed=seed)
        rows, labels = read_rows(tmp_path / "fashion", key), read_labels(tmp_path / "fashion", key)
        np.testing.assert_allclose(all_of(rows), images.reshape(n, -1) / np.float32(255), rtol=1e-6)
        assert rows.image_shape == (8, 8)
        assert labels.names[:2] == ("T-shirt/top", "Trouser")
        np.testing.assert_array_equal(labels.values.argmax(1), classes)


def test_one_idx_file(tmp_path):
    images, _ = shapes(6)
    for name in ("images-idx3-ubyte", "images.idx", "images-idx3-ubyte.gz"):
        write_idx(tmp_path / name, images)
        np.testing.assert_allclose(all_of(read_rows(tmp_path / name)), images.reshape(6, -1) / np.float32(255))
    write_idx(tmp_path / "flat.gz", images.reshape(6, -1))
    np.testing.assert_array_equal(all_of(read_rows(tmp_path / "flat.gz")), images.reshape(6, -1))


def test_classes_without_names_are_numbered(tmp_path):
    write_mnist(tmp_path / "digits", 30)
    assert read_labels(tmp_path / "digits").names == ("class 0", "class 1", "class 2")


def test_celeba_folder(tmp_path):
    write_celeba(tmp_path / "celeba", 12)
    _, classes = shapes(12, 16, channels=3)
    for number, part in enumerate(["train", "valid", "test"]):
        rows, labels = read_rows(tmp_path / "celeba", part), read_labels(tmp_path / "celeba", part)
        assert (len(rows), rows.image_shape) == (4, (64, 64, 3))
        assert labels.names == ATTRIBUTES
        np.testing.assert_array_equal(labels.values.argmax(1), classes[number::3])
    with Image.open(tmp_path / "celeba/img_align_celeba/000001.jpg") as face:
        wanted = face.crop((19, 39, 159, 179)).resize((64, 64), Image.Resampling.BILINEAR)
    np.testing.assert_allclose(
        all_of(read_rows(tmp_path / "celeba"))[0], np.asarray(wanted).reshape(-1) / 255, atol=1e-6
    )


def test_parquet_with_attributes(tmp_path):
    write_parquet(tmp_path / "set.parquet", 7)
    images, classes = shapes(7, channels=3)
    rows, labels = read_rows(tmp_path / "set.parquet"), read_labels(tmp_path / "set.parquet")
    np.testing.assert_allclose(all_of(rows), images.reshape(7, -1) / np.float32(255), rtol=1e-6)
    assert labels.names == ATTRIBUTES
    np.testing.assert_array_equal(labels.values.argmax(1), classes)
    pd.DataFrame({"x": [1.0, 2.0], "label": [0, 2]}).to_parquet(tmp_path / "classes.parquet")
    np.testing.assert_array_equal(read_labels(tmp_path / "classes.parquet").values, [[1, 0, 0], [0, 0, 1]])


def idx(*shape, content=b"", magic=b"\0\0\x08"):
    return magic + bytes([len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


BROKEN_IDX = {
    "empty": (b"", "starts with nothing, expected the magic of an idx file"),
    "other": (b"\x89PNG\r\n\x1a\n", "starts with 89504e47, expected the magic"),
    "type": (idx(2, 2, content=bytes(4), magic=b"\0\0\x07"), "expected the magic"),
    "axes": (bytes([0, 0, 8, 200]) + bytes(800), "expected the magic"),
    "torn header": (bytes([0, 0, 8, 3]) + bytes(5), "ends inside its header, expected 3 lengths"),
    "torn": (idx(4, 3, 3, content=bytes(30)), "holds 30 bytes of values, its header says 36"),
    "long": (idx(4, 3, 3, content=bytes(37)), "holds more bytes of values, its header says 36"),
    "terabytes": (idx(60000, 40000, 40000, content=bytes(9)), "promises 96000000000000 bytes of values but can hold"),
    "overflow": (idx(2**32 - 1, 2**32 - 1, 2**32 - 1), "promises"),
}


@pytest.mark.parametrize("name", BROKEN_IDX)
@pytest.mark.parametrize("packed", [True, False])
def test_broken_idx_files(tmp_path, name, packed):
    content, message = BROKEN_IDX[name]
    path = tmp_path / ("x-idx3-ubyte.gz" if packed else "x-idx3-ubyte")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(DataError) as caught:
        read_rows(path)
    assert str(caught.value).startswith(f"{path}: {path.name} ")
    assert ("would take" if packed and message.startswith("promises") else message) in str(caught.value)


def test_not_gzip(tmp_path):
    (tmp_path / "x.gz").write_bytes(b"no")
    with pytest.raises(DataError, match=r"x\.gz: the data could not be read \(Not a gzipped file"):
        read_rows(tmp_path / "x.gz")


def spoil_mnist(folder, what):
    if what == "labels":
        (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    elif what == "axes":
        write_idx(folder / "t10k-images-idx3-ubyte.gz", np.zeros((4, 4)))


def spoil_celeba(folder, what):
    picture = folder / "img_align_celeba/000001.jpg"
    lists = {name: folder / f"list_{name}.txt" for name in ("attr_celeba", "eval_partition")}
    if what == "truncated":
        picture.write_bytes(picture.read_bytes()[:700])
    elif what == "small":
        Image.new("RGB", (100, 100)).save(picture)
    elif what == "grey":
        Image.open(picture).convert("L").save(picture)
    elif what == "missing":
        picture.unlink()
    elif what in ("attr_celeba", "eval_partition"):
        lists[what].unlink()
    elif what == "attribute":
        lists["attr_celeba"].write_text(lists["attr_celeba"].read_text().replace("000001.jpg  1", "000001.jpg  yes"))
        lists["attr_celeba"].write_text(lists["attr_celeba"].read_text().replace("000001.jpg  -1", "000001.jpg  yes"))
    elif what == "no attributes":
        lists["attr_celeba"].write_text("")
    elif what == "line":
        lists["eval_partition"].write_text("000001.jpg\n")
    elif what == "outside":
        lists["eval_partition"].write_text("../../etc/passwd 0\n")
    elif what == "nobody":
        lists["eval_partition"].write_text("000001.jpg 2\n")


BROKEN_SETS = [
    (write_mnist, spoil_mnist, "labels", "test", read_labels, "t10k-labels-idx1-ubyte.gz is missing"),
    (write_mnist, spoil_mnist, "axes", "test", read_rows, "t10k-images-idx3-ubyte.gz holds uint8 values of shape"),
    (write_mnist, spoil_mnist, "", "tset", read_rows, "there is no part 'tset', expected one of train, test"),
    (
        write_celeba,
        spoil_celeba,
        "truncated",
        None,
        read_rows,
        "000001.jpg could not be decoded as an image (image file is",
    ),
    (write_celeba, spoil_celeba, "small", None, read_rows, "000001.jpg is 100×100, expected at least 140×140"),
    (
        write_celeba,
        spoil_celeba,
        "grey",
        None,
        read_rows,
        "000004.jpg is 64×64 colour of 8 bits and 000001.jpg is 64×64 grey",
    ),
    (write_celeba, spoil_celeba, "missing", None, read_rows, "000001.jpg is missing, expected all 4 images"),
    (write_celeba, spoil_celeba, "attr_celeba", None, read_labels, "list_attr_celeba.txt is missing or unreadable"),
    (write_celeba, spoil_celeba, "eval_partition", None, read_rows, "list_eval_partition.txt is missing or unreadable"),
    (write_celeba, spoil_celeba, "attribute", None, read_labels, "has no 3 values of 1 or -1 for 000001.jpg"),
    (write_celeba, spoil_celeba, "no attributes", None, read_labels, "the attributes could not be read"),
    (
        write_celeba,
        spoil_celeba,
        "line",
        None,
        read_rows,
        "has the line '000001.jpg', expected a file name and 0, 1 or 2",
    ),
    (write_celeba, spoil_celeba, "outside", None, read_rows, "has the line '../../etc/passwd 0'"),
    (write_celeba, spoil_celeba, "nobody", None, read_rows, "names no picture of the part 'train'"),
    (write_celeba, spoil_celeba, "", "half", read_rows, "there is no part 'half', expected one of train, valid, test"),
]


@pytest.mark.parametrize(("write", "spoil", "what", "key", "read", "message"), BROKEN_SETS)
def test_broken_sets_name_the_file(tmp_path, write, spoil, what, key, read, message):
    folder = tmp_path / "set"
    write(folder)
    spoil(folder, what)
    with pytest.raises(DataError) as caught:
        read(folder, key)
    assert str(caught.value).startswith(f"{folder}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_data_without_attributes(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 4)))
    with pytest.raises(DataError, match="this kind of data carries no attributes"):
        read_labels(tmp_path / "x.npy")
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"the columns are x, expected attributes"):
        read_labels(tmp_path / "x.parquet")
