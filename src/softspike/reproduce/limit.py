"""Stopping in good time where a limit of time was set."""

import time

__all__ = ["Limit", "OutOfTime"]


class OutOfTime(Exception):
    """The work left would pass the limit; what is finished is saved."""


class Limit:
    """A wall-clock limit, and what a cell has cost so far."""

    def __init__(self, minutes: float | None):
        if minutes is not None and not minutes > 0:
            raise ValueError(f"--limit-minutes is {minutes}, expected a number > 0; leave it out for no limit")
        self._until = None if minutes is None else time.monotonic() + 60 * minutes
        self._slowest = 0.0  # seconds per cell, of the slowest batch of work so far

    def learn(self, cells: int, seconds: float) -> None:
        """Take note that so many cells took so long."""
        self._slowest = max(self._slowest, seconds / cells)

    def check(self, cells: int = 1) -> None:
        """Raise OutOfTime where so many cells more would not fit."""
        if self._until is not None and time.monotonic() + cells * self._slowest > self._until:
            raise OutOfTime
