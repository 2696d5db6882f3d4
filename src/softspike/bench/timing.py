"""Rounds in which every method takes its turn, so that what else the machine does hits all alike."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from softspike.bench.entry import Codes, Entry

__all__ = ["rounds", "signals_within"]

_FIRST = 50  # signals of a first trial, which also compiles and loads
_MORE = 3  # trials of the number found, while each takes less than half of what was expected


def signals_within(entry: Entry, n_signals: int, seconds: float) -> int:
    """How many signals the method codes in about so much processor time: all, or a number that its row will state.

    By trials that grow, since a few signals bear the whole cost of what is done once for all, and some methods take
    another way for many.
    """
    count = min(_FIRST, n_signals)
    entry.code(count)
    took = _timed(entry, count)[0].cpu
    while count < n_signals and took < seconds:
        count = min(4 * count, n_signals)
        took = _timed(entry, count)[0].cpu
        if took > seconds:  # or it was the first to load what is compiled for so many
            took = min(took, _timed(entry, count)[0].cpu)
    for _ in range(_MORE):
        fits = _within(count, took, n_signals, seconds)
        if fits == count:
            break
        took, expected, count = _timed(entry, fits)[0].cpu, took * fits / count, fits
        if took > expected:
            took = min(took, _timed(entry, count)[0].cpu)
        if took > 0.5 * expected:
            break
    return _within(count, took, n_signals, seconds) if took < 0.5 * seconds else count


def _within(count: int, took: float, n_signals: int, seconds: float) -> int:
    """How many signals take so many seconds, where `count` of them took `took`."""
    return n_signals if took * n_signals <= seconds * count else max(int(count * seconds / took), min(_FIRST, count))


def rounds(entries: Sequence[Entry], counts: Sequence[int], n_rounds: int, told: Callable[[str], None]) -> list[Codes]:
    """Append each entry's seconds per 1,000 signals, round by round; the codes of the last round."""
    last: list[Codes] = []
    for number in range(n_rounds):
        last = []
        for entry, count in zip(entries, counts, strict=True):
            told(f"round {number + 1} of {n_rounds}: {entry.package} {entry.name}")
            took, codes = _timed(entry, count)
            entry.seconds.append(1000 * took.wall / count)
            entry.cpu_seconds.append(1000 * took.cpu / count)
            last.append(codes)
    return last


class Took(NamedTuple):
    wall: float
    cpu: float  # of all threads together: on a machine with other work, the steadier of the two


def _timed(entry: Entry, count: int) -> tuple[Took, Codes]:
    begun, worked = time.perf_counter(), time.process_time()
    codes = entry.code(count)
    return Took(time.perf_counter() - begun, time.process_time() - worked), codes
