"""What is known about the samples of a data set besides their values: named yes-or-no attributes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Labels", "from_classes"]


class Labels(NamedTuple):
    """m attributes of n samples; classes are attributes of which one holds."""

    names: tuple[str, ...]
    values: np.ndarray  # (n, m) booleans


def from_classes(classes: np.ndarray, names: Sequence[str] | None = None) -> Labels:
    """Class numbers (n,) as attributes, one for each class."""
    n_classes = int(classes.max(initial=0)) + 1 if names is None else len(names)
    labels = tuple(names) if names is not None else tuple(f"class {number}" for number in range(n_classes))
    return Labels(labels, classes[:, None] == np.arange(n_classes))
