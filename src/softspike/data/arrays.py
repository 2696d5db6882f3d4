"""Files of arrays → rows: one reader per suffix, and one sentence where a file cannot be read."""

import difflib
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from os import PathLike
from pathlib import Path

import numpy as np

from softspike.data.cache import Watch
from softspike.data.error import DataError, reason, shape_error
from softspike.data.folders import read_folder, refuse_key
from softspike.data.idx import is_idx, load_idx
from softspike.data.images import PixelRows
from softspike.data.mapped import SMALL, Whole, open_npy
from softspike.data.matlab import load_mat
from softspike.data.members import check_member
from softspike.data.rows import ArrayRows, StoredRows, TensorRows
from softspike.data.tables import read_parquet
from softspike.disk import NotRegular, check_regular

__all__ = ["READERS", "read_rows"]


def read_rows(path: str | PathLike[str], key: str | None = None, watch: Watch | None = None) -> StoredRows:
    """The rows of a file or folder; arrays (n, h, w[, c]) become rows of h·w[·c] with `image_shape` remembered.

    `key` names the array of an .npz, .mat or .safetensors file, the column of a .parquet file, or the part (train,
    test) of a folder that holds CelebA or one of the MNISTs. `watch` is told how many images are decoded, of how many.
    """
    place = Path(path)
    try:
        return _reader(place, watch)(place, key)
    except DataError as error:
        raise DataError(f"{place}: {error}") from error.__cause__
    except NotRegular as error:
        raise DataError(str(error)) from error
    except Exception as cause:  # the format libraries raise anything at all on a broken file
        remedy = "check that it is complete and of the kind its name says"
        raise DataError(f"{place}: the data could not be read ({reason(cause)}); {remedy}.") from cause


def _reader(path: Path, watch: Watch | None) -> Callable[[Path, str | None], StoredRows]:
    suffix = path.suffix.lower()
    if not path.exists():
        raise DataError("this does not exist, expected a file or folder of data; check the path.")
    if path.is_dir():
        return partial(read_folder, watch=watch)
    check_regular(path)
    if suffix == ".parquet":
        return partial(read_parquet, watch=watch)
    if suffix in READERS:
        return READERS[suffix]
    if is_idx(path):
        return _read_idx
    near = difflib.get_close_matches(suffix, READERS, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]}?" if near else "convert it to one of these."
    given = f"the suffix {suffix!r} is not known" if suffix else "the name has no suffix"
    raise DataError(f"{given}, expected {', '.join(READERS)} or a folder of .npy shards or images; {hint}")


def _read_npy(path: Path, key: str | None) -> ArrayRows:
    refuse_key(key, "an .npy file")
    return _rows_of(open_npy(path))


def _read_npz(path: Path, key: str | None) -> ArrayRows:
    if not zipfile.is_zipfile(path):
        raise DataError("this is not an .npz archive, expected a file written by numpy.savez; write it again.")
    with np.load(path, allow_pickle=False) as archive:
        name = _choose(archive.files, key)
        check_member(archive.zip, name, path)
        return _rows_of(archive[name])


def _read_mat(path: Path, key: str | None) -> ArrayRows:
    # MATLAB has no scalars: a setting saved beside the data is a 1×1 array.
    arrays = {name: value for name, value in load_mat(path).items() if value.size > 1}
    return _rows_of(arrays[_choose(arrays, key)])


def _read_safetensors(path: Path, key: str | None) -> TensorRows:
    from safetensors import safe_open
    from safetensors.torch import load

    check: Callable[[], None] = Whole(path) if path.stat().st_size > SMALL else lambda: None
    if isinstance(check, Whole):
        with safe_open(path, framework="pt") as file:
            tensor = file.get_tensor(_choose(file.keys(), key))
    else:
        tensors = load(path.read_bytes())
        tensor = tensors[_choose(sorted(tensors), key)]
    if tensor.ndim < 2:
        raise shape_error(tensor.shape)
    shape = tuple(tensor.shape)
    return TensorRows(tensor.reshape(shape[0], prod(shape[1:])), shape[1:] if len(shape) > 2 else None, check)


def _read_idx(path: Path, key: str | None) -> StoredRows:
    refuse_key(key, "an idx file")
    array = load_idx(path)
    return PixelRows(array) if array.dtype == np.uint8 and array.ndim == 3 else _rows_of(array)


def _rows_of(array: np.ndarray) -> ArrayRows:
    return ArrayRows(array, array.shape[1:] if array.ndim > 2 else None)


def _choose(names: Iterable[str], key: str | None) -> str:
    """The only name, or the one asked for."""
    known = list(names)
    listed = ", ".join(known) if known else "none"
    if key is None and len(known) == 1:
        return known[0]
    if key is None:
        raise DataError(f"the file holds {len(known)} arrays ({listed}), expected one; choose one with its key.")
    if key not in known:
        raise DataError(f"the file has no array {key!r}, expected one of its arrays ({listed}); choose one of these.")
    return key


READERS: dict[str, Callable[[Path, str | None], StoredRows]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".safetensors": _read_safetensors,
    ".parquet": read_parquet,
    ".gz": _read_idx,
}
