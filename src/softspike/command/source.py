"""Which rows a run was trained on, and how to find them again."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from softspike.data import ArrayRows, Rows, SubsetRows, Unwatched, Watch, photograph_patches, read_rows

__all__ = ["DEMO", "Missing", "Source", "demo_rows", "find_again", "fingerprint", "some"]

DEMO = {"name": "embedded photographs", "image_shape": [16, 16]}
_MOST_ROWS = 20_000  # that are measured


class Source(NamedTuple):
    rows: Rows
    words: str  # what they are
    training: bool  # the run has learned from them


class Missing(NamedTuple):
    """Rows that were looked for in vain."""

    why: str


def demo_rows(seed: int) -> tuple[ArrayRows, ArrayRows]:
    """Whitened 16×16 patches of the embedded photographs to learn from, and unseen ones."""
    learning, unseen = photograph_patches(80_000, 8000, size=16, seed=seed)
    return ArrayRows(learning), ArrayRows(unseen)


def find_again(config: Mapping[str, Any], watch: Watch = Unwatched()) -> Source | Missing:
    """The data of a run, if it is still where it was and still the same; otherwise what is amiss."""
    data = config.get("data") or {}
    if data == DEMO:
        return Source(demo_rows(config["estimator"].get("random_state") or 0)[1], "unseen patches", False)
    if not data.get("name"):
        return Missing("the run does not say which data it was trained on")
    place = Path(str(data["name"]))
    if not place.exists():
        return Missing(f"{place}, which it was trained on, was not found")
    try:
        rows = read_rows(place, data.get("key"), watch)
    except ValueError:
        return Missing(f"{place}, which it was trained on, cannot be read any more")
    known = fingerprint(rows) == data.get("fingerprint")
    if not known:
        return Missing(f"{place} is not the data that it was trained on any more")
    return Source(some(rows), f"training rows of {place}", True)


def some(rows: Rows, most: int = _MOST_ROWS) -> Rows:
    """All rows, or enough of them, evenly spread."""
    return rows if len(rows) <= most else SubsetRows.spread(rows, most)


def fingerprint(rows: Rows) -> str:
    """The size of the data and a hash of a few of its rows: enough to notice another file, cheap for any size."""
    few = rows.take(SubsetRows.spread(rows, 64).numbers)
    return f"{len(rows)}x{rows.n_features}:{hashlib.sha256(few.numpy().tobytes()).hexdigest()[:16]}"
