"""Waiting for a machine that does nothing else, so that a round of timings tells of what is timed."""

import time
from pathlib import Path

__all__ = ["idle_share", "wait_for_calm"]

_STAT = Path("/proc/stat")  # Linux only; elsewhere there is no waiting
_IDLE, _WATCHED = 0.9, 0.5  # share of all processors, seconds


def idle_share(seconds: float = _WATCHED) -> float:
    """The share of processor time that nobody used in so many seconds from now."""

    def spent() -> tuple[int, int]:
        ticks = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)  # idle and waiting for a disk; all

    idle, total = spent()
    time.sleep(seconds)
    idle_then, total_then = spent()
    return (idle_then - idle) / max(total_then - total, 1)


def wait_for_calm(seconds: float) -> None:
    """Until nine tenths of the processors are idle, and no longer than so many seconds."""
    end = time.monotonic() + seconds
    while _STAT.exists() and time.monotonic() < end and idle_share() < _IDLE:
        pass
