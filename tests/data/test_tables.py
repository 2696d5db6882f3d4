"""Parquet: numeric columns, lists, encoded images, and what is refused."""

from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from softspike.data import DataError, read_rows

RANDOM = np.random.default_rng(3)
VALUES = RANDOM.normal(size=(50, 6)).astype(np.float32)
PIXELS = RANDOM.integers(0, 256, (5, 4, 3, 3), dtype=np.uint8)


def write(folder, row_group_size=20, **columns):
    path = folder / "table.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=row_group_size)
    return path


def encoded(pixels, kind="PNG"):
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def all_of(rows):
    return rows.take(torch.arange(len(rows))).numpy()


def lists(kind):
    return pa.array(VALUES.tolist(), type=kind)


NUMERIC = {
    "columns": {f"c{i}": VALUES[:, i] for i in range(6)},
    "lists": {"x": lists(pa.list_(pa.float32()))},
    "fixed lists": {"x": lists(pa.list_(pa.float32(), 6))},
    "large lists": {"x": lists(pa.large_list(pa.float64()))},
    "lists of lists": {"x": pa.array(VALUES.reshape(50, 3, 2).tolist(), pa.list_(pa.list_(pa.float32(), 2)))},
    "a column and a list": {"a": VALUES[:, 0], "rest": pa.array(VALUES[:, 1:].tolist(), pa.list_(pa.float32()))},
    "with words beside": {"word": ["w"] * 50, "x": lists(pa.list_(pa.float32()))},
}


@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_columns_round_trip(tmp_path, name):
    rows = read_rows(write(tmp_path, **NUMERIC[name]))
    np.testing.assert_array_equal(all_of(rows), VALUES)
    assert rows.image_shape is None


def test_integers_and_booleans_are_numbers(tmp_path):
    path = write(tmp_path, a=np.array([1, 2], np.int8), b=np.array([True, False]))
    np.testing.assert_array_equal(all_of(read_rows(path)), [[1, 1], [2, 0]])
    np.testing.assert_array_equal(all_of(read_rows(path, key="b")), [[1], [0]])


@pytest.mark.parametrize("struct", [False, True])
def test_encoded_images_become_pixels(tmp_path, struct):
    content = [encoded(image) for image in PIXELS]
    column = [{"bytes": c, "path": "x.png"} for c in content] if struct else content
    path = write(tmp_path, label=np.arange(5), image=column)
    rows = read_rows(path)
    assert rows.image_shape == (4, 3, 3)
    np.testing.assert_array_equal(all_of(rows), (PIXELS.reshape(5, -1).astype(np.float32) / 255))
    np.testing.assert_array_equal(all_of(read_rows(path, key="label")), np.arange(5)[:, None])


def test_an_empty_table_has_no_rows(tmp_path):
    rows = read_rows(write(tmp_path, a=np.zeros(0), b=np.zeros(0)))
    assert (len(rows), rows.n_features) == (0, 2)


BAD = [
    ({"a": ["x", "y"]}, None, "the columns are a, expected numbers, lists of numbers or encoded images"),
    ({"a": [1.0], "w": ["x"]}, "w", "the column 'w' holds string, expected numbers"),
    ({"a": [1.0], "b": [2.0]}, "c", "there is no column 'c', expected one of a, b"),
    ({"a": [1.0, None, 3.0]}, None, "the column 'a' has 1 missing values, the first near row 1 (counted from 0)"),
    ({"a": [[1.0], [2.0, 3.0]]}, None, "the column 'a' holds lists of 1 to 2 values, expected one length"),
    ({"a": [[1.0]] * 70_000 + [[2.0, 3.0]] * 70_000}, None, "expected one length"),
    ({"image": [encoded(PIXELS[0]), b"not an image"]}, None, "the image of row 1 could not be decoded as an image"),
    ({"image": [encoded(PIXELS[0]), None]}, None, "the image of row 1 is missing, expected encoded bytes"),
    (
        {"image": [encoded(PIXELS[0]), encoded(PIXELS[0, :2])]},
        None,
        "row 1 is 2×3 colour of 8 bits and the image of row 0",
    ),
]


@pytest.mark.parametrize(("columns", "key", "message"), BAD)
def test_bad_tables_get_one_sentence(tmp_path, columns, key, message):
    path = write(tmp_path, 200_000, **columns)
    with pytest.raises(DataError) as caught:
        read_rows(path, key)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
