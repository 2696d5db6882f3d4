"""Several runs side by side: the figures in one table, the dictionaries matched one to one."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from softspike.metric import pair_atoms
from softspike.report.headline import Headline, headlines
from softspike.report.record import Record

__all__ = ["Comparison", "compare"]

_ALIKE = 0.9  # |cos| from which two atoms count as the same
_SAME_COUNT = 1.05  # explained variances are ranked only where mean counts are this close


class Cell(NamedTuple):
    item: Headline | None
    best: bool


class Row(NamedTuple):
    title: str
    cells: list[Cell]


class MatchedRun(NamedTuple):
    """The dictionary of another run against that of the first."""

    other: int
    words: str
    alike: float
    arrays: dict[str, np.ndarray]  # first, second, cosine, by falling |cos|


class Comparison(NamedTuple):
    rows: list[Row]
    base: int  # the run that others are matched with
    pairs: list[MatchedRun]
    unmatched: str  # which runs could not be matched, and why
    note: str  # how to read the table


def compare(records: Sequence[Record]) -> Comparison:
    """Nothing for a single run. Runs are matched with the first that has a dictionary, where their features agree."""
    if len(records) < 2:
        return Comparison([], 0, [], "", "")
    drawn = [number for number, record in enumerate(records) if record.dictionary is not None]
    base = drawn[0] if drawn else 0
    pairs, left_out = [], []
    for number in drawn[1:]:
        same = _width(records[number]) == _width(records[base])
        if same:
            pairs.append(_match(records[base], records[number], number))
        else:
            left_out.append(f"{records[number].name} ({_width(records[number])} features)")
    words = ""
    if left_out:
        listed = ", ".join(left_out)
        words = f"Not matched with {records[base].name} ({_width(records[base])} features): {listed}."
    note = "The same figures side by side. "
    if not _same_data(records):
        note += "The runs were measured on different data, so none is marked as the best."
    else:
        note += "The best of a row is marked."
    if _same_data(records) and not _same_count(records):
        note += " Explained variance is not ranked, as the runs use different numbers of atoms: compare their curves."
    return Comparison(_table(records), base, pairs, words, note)


def _width(record: Record) -> int:
    return record.dictionary.components.shape[1] if record.dictionary is not None else 0


def _table(records: Sequence[Record]) -> list[Row]:
    columns = [{item.id: item for item in headlines(record)} for record in records]
    same_data, same_count = _same_data(records), _same_count(records)
    titles = {item.id: item.title for column in columns for item in column.values()}
    rows = []
    for key, title in titles.items():
        items = [column.get(key) for column in columns]
        best = _best(items) if same_data and (same_count or key != "explained") else None
        rows.append(Row(title, [Cell(item, item is not None and item is best) for item in items]))
    return rows


def _best(items: Sequence[Headline | None]) -> Headline | None:
    """The item with the largest score; None where that is the only one, or where another reads the same."""
    ranked = sorted((item for item in items if item and item.score is not None), key=lambda item: -(item.score or 0.0))
    if len(ranked) < 2 or any(item.value == ranked[0].value for item in ranked[1:]):
        return None
    return ranked[0]


def _same_data(records: Sequence[Record]) -> bool:
    return len({_data_of(record) for record in records if record.figures}) <= 1


def _data_of(record: Record) -> tuple[Any, ...]:
    """Enough of the rows that a run was measured on to tell them from others."""
    if record.measured is None:
        data = record.config.get("data") or {}
        return data.get("fingerprint") or data.get("name"), (record.summary or {}).get("on")
    rows = record.measured.rows
    few = rows.take(torch.tensor([0, len(rows) // 2, len(rows) - 1]))
    return len(rows), few.numpy().tobytes()


def _same_count(records: Sequence[Record]) -> bool:
    counts = [record.figures.summary.active for record in records if record.figures]
    return bool(counts) and max(counts) <= _SAME_COUNT * min(counts)


def _match(base: Record, other: Record, number: int) -> MatchedRun:
    assert base.dictionary is not None
    assert other.dictionary is not None
    first, second = (torch.from_numpy(np.asarray(r.dictionary.components)) for r in (base, other) if r.dictionary)
    pairs = pair_atoms(first, second)
    size = pairs.cosine.abs()
    alone = abs(len(first) - len(second))
    alike = f"{int((size >= _ALIKE).sum())} of {len(size)} pairs are alike (|cos| ≥ {_ALIKE})"
    words = f"{alike}, the median |cos| is {float(size.median()):.2f}"
    if alone:
        words += f"; {alone} atoms of the larger dictionary have no partner"
    arrays = {
        "first": pairs.first.numpy().astype(np.uint32), "second": pairs.second.numpy().astype(np.uint32),
        "cosine": pairs.cosine.numpy().astype(np.float32),
    }  # fmt: skip
    return MatchedRun(number, words + ".", _ALIKE, arrays)
