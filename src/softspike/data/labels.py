"""What is known about the samples of a data set besides their values: named yes-or-no attributes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softspike.data.error import DataError

__all__ = ["Labels", "from_classes"]

_MOST_CLASSES = 4096  # each becomes a column


class Labels(NamedTuple):
    """m attributes of n samples; classes are attributes of which one holds."""

    names: tuple[str, ...]
    values: np.ndarray  # (n, m) booleans


def from_classes(classes: np.ndarray, names: Sequence[str] | None = None) -> Labels:
    """Class numbers (n,) as attributes, one for each class; as many as there are names, where they are given."""
    most, limit = int(classes.max(initial=0)), _MOST_CLASSES if names is None else len(names)
    if classes.min(initial=0) < 0 or most >= limit:
        raise DataError(
            f"the classes run from {classes.min(initial=0)} to {most}, expected numbers from 0 to {limit - 1}; "
            "number them from 0."
        )
    n_classes = most + 1 if names is None else len(names)
    labels = tuple(names) if names is not None else tuple(f"class {number}" for number in range(n_classes))
    return Labels(labels, classes[:, None] == np.arange(n_classes))
