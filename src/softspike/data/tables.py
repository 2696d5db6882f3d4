"""Parquet files → rows: numeric columns, regular lists of numbers, or a column of encoded images."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from softspike.data.cache import Watch, signature
from softspike.data.error import DataError
from softspike.data.images import PixelRows, decode_images
from softspike.data.labels import Labels, from_classes
from softspike.data.promise import check_promise
from softspike.data.rows import ArrayRows, StoredRows

__all__ = ["parquet_labels", "read_parquet"]

_BATCH = 4096  # rows decoded at a time: a row may be a list of thousands


def read_parquet(path: Path, key: str | None, watch: Watch | None = None) -> StoredRows:
    """The column `key`; without one, the `image` column where it holds encoded images, else all numeric columns."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _check_groups(file, path)
        fields = {field.name: field.type for field in file.schema_arrow}
        if key is not None and key not in fields:
            raise DataError(f"there is no column {key!r}, expected one of {_listed(fields)}; choose one of these.")
        encoded = [name for name in ([key] if key else ["image"]) if name in fields and _is_encoded(fields[name])]
        if encoded:
            return _read_encoded(path, file, encoded[0], watch)
        numeric = [name for name in ([key] if key else fields) if _is_numeric(_innermost(fields[name]))]
        if not numeric:
            given = f"the column {key!r} holds {fields[key]}" if key else f"the columns are {_listed(fields)}"
            raise DataError(f"{given}, expected numbers, lists of numbers or encoded images; convert them first.")
        return ArrayRows(_matrix(file, numeric, path))


def _read_encoded(path: Path, file: Any, column: str, watch: Watch | None) -> PixelRows:
    source = {"parquet": signature(path), "column": column}
    stored = path.stat().st_size
    return decode_images(
        lambda: _named_images(file, column), file.metadata.num_rows, source, watch=watch, stored=stored
    )


def parquet_labels(path: Path) -> Labels:
    """The columns of booleans; without any, the classes of an integer column named label."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _check_groups(file, path)
        schema = file.schema_arrow
        names = tuple(field.name for field in schema if pa.types.is_boolean(field.type))
        if names:
            return Labels(names, _matrix(file, list(names), path).astype(bool))
        if "label" in schema.names and pa.types.is_integer(schema.field("label").type):
            return from_classes(_matrix(file, ["label"], path)[:, 0])
    raise DataError(
        f"the columns are {_listed(schema.names)}, expected attributes: columns of booleans, or an integer column "
        "named label; add them."
    )


def _check_groups(file: Any, path: Path) -> None:
    """Refuse groups of rows that would become far more than the file holds: their pages are unpacked one by one."""
    stored = path.stat().st_size
    for number in range(file.metadata.num_row_groups):
        check_promise(file.metadata.row_group(number).total_byte_size, stored, f"the row group {number}")


def _matrix(file: Any, names: list[str], path: Path) -> np.ndarray:
    """All values of the columns, (n, D), in the narrowest dtype that holds them; one copy, filled batch by batch."""
    matrix, start, n_rows = np.empty((0, len(names))), 0, file.metadata.num_rows
    for batch in file.iter_batches(columns=names, batch_size=_BATCH):
        parts = [_values(name, column, start) for name, column in zip(names, batch.columns, strict=True)]
        if start == 0:
            width, dtype = sum(part.shape[1] for part in parts), np.result_type(*parts)
            check_promise(n_rows * width * dtype.itemsize, path.stat().st_size, f"a table of {n_rows} × {width}")
            matrix = np.empty((n_rows, width), dtype)
        elif sum(part.shape[1] for part in parts) != matrix.shape[1]:
            raise DataError(f"the lists change their length after row {start}, expected one length; pad them.")
        np.concatenate(parts, axis=1, out=matrix[start : start + len(batch)])
        start += len(batch)
    if start != n_rows:  # the rest of the matrix would be whatever was in that memory before
        raise DataError(f"there are {start} rows where {n_rows} were announced; check that the file is complete.")
    return matrix


def _values(name: str, column: Any, start: int) -> np.ndarray:
    """(rows, width) of one column; lists are flattened and must all have one length."""
    n_rows = len(column)
    while True:
        if column.null_count:
            row = start + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            what = f"{column.null_count} missing values, the first near row {row} (counted from 0)"
            raise DataError(f"the column {name!r} has {what}, expected none; fill them or drop their rows.")
        if not _is_list(column.type):
            return column.to_numpy(zero_copy_only=False).reshape(n_rows, -1)
        lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
        if len(lengths) > 1:
            found = f"lists of {lengths.min()} to {lengths.max()} values"
            raise DataError(f"the column {name!r} holds {found}, expected one length; pad them or split the file.")
        column = column.flatten()


def _named_images(file: Any, name: str) -> Iterator[tuple[str, bytes]]:
    row = 0
    for batch in file.iter_batches(columns=[name], batch_size=256):
        for value in batch.columns[0].to_pylist():
            content = value.get("bytes") if isinstance(value, dict) else value
            if content is None:
                raise DataError(f"the image of row {row} is missing, expected encoded bytes; drop that row.")
            yield f"the image of row {row}", content
            row += 1


def _is_encoded(kind: Any) -> bool:
    """Bytes, or the {bytes, path} that image datasets use."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return any(field.name == "bytes" and _is_encoded(field.type) for field in kind)
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _is_numeric(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _innermost(kind: Any) -> Any:
    return _innermost(kind.value_type) if _is_list(kind) else kind


def _listed(names: Any) -> str:
    listed = list(names)
    return ", ".join(listed[:12]) + (", …" if len(listed) > 12 else "")
