"""Rounds in which every method takes its turn, so that what else the machine does hits all alike."""

import time
from collections.abc import Callable, Sequence

from softspike.bench.entry import Codes, Entry

__all__ = ["rounds", "signals_within"]

_FIRST = 50  # signals of a first trial, which also compiles and loads


def signals_within(entry: Entry, n_signals: int, seconds: float) -> int:
    """How many signals the method codes in about so much time: all, or a number that its row will state."""
    first = min(_FIRST, n_signals)
    entry.code(first)
    took = _timed(entry, first)[0] / first
    if took * n_signals <= seconds:
        return n_signals
    return min(n_signals, max(int(seconds / took), first))


def rounds(entries: Sequence[Entry], counts: Sequence[int], n_rounds: int, told: Callable[[str], None]) -> list[Codes]:
    """Append each entry's seconds per 1,000 signals, round by round; the codes of the last round."""
    last: list[Codes] = []
    for number in range(n_rounds):
        last = []
        for entry, count in zip(entries, counts, strict=True):
            told(f"round {number + 1} of {n_rounds}: {entry.package} {entry.name}")
            took, codes = _timed(entry, count)
            entry.seconds.append(1000 * took / count)
            last.append(codes)
    return last


def _timed(entry: Entry, count: int) -> tuple[float, Codes]:
    begun = time.perf_counter()
    codes = entry.code(count)
    return time.perf_counter() - begun, codes
