"""The attributes of a data set, from wherever it keeps them."""

from os import PathLike
from pathlib import Path

from softspike.data.celeba import celeba_labels, is_celeba
from softspike.data.error import DataError, reason
from softspike.data.labels import Labels
from softspike.data.mnist import is_mnist, mnist_labels
from softspike.data.tables import parquet_labels
from softspike.disk import NotRegular, check_regular

__all__ = ["has_labels", "read_labels"]


def has_labels(path: str | PathLike[str]) -> bool:
    """Whether the data is of a kind that can carry attributes."""
    place = Path(path)
    return is_celeba(place) or is_mnist(place) or place.suffix.lower() == ".parquet"


def read_labels(path: str | PathLike[str], key: str | None = None) -> Labels:
    """The attributes of what `read_rows` gives for the same path and key, row by row."""
    place = Path(path)
    try:
        if is_celeba(place):
            return celeba_labels(place, key)
        if is_mnist(place):
            return mnist_labels(place, key)
        if place.suffix.lower() == ".parquet":
            check_regular(place)
            return parquet_labels(place)
    except DataError as error:
        raise DataError(f"{place}: {error}") from error.__cause__
    except NotRegular as error:
        raise DataError(str(error)) from error
    except Exception as cause:  # the format libraries raise anything at all on a broken file
        raise DataError(f"{place}: the attributes could not be read ({reason(cause)}); get the file again.") from cause
    raise DataError(
        f"{place}: this kind of data carries no attributes, expected a parquet file with columns of booleans, or the "
        "folder of CelebA or an MNIST; convert it."
    )
