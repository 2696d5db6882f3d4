"""Ctrl-C or SIGTERM while training: the step at hand is finished and saved, then training stops."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "stop_on_interrupt"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and did, after `step` steps, all of them saved; `number` is the signal that asked."""

    def __init__(self, step: int):
        super().__init__(f"interrupted after step {step}")
        self.step, self.number = step, int(signal.SIGINT)


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """A function that says whether a signal asked for a stop; a second one stops everything at once.

    Python delivers signals to the main thread only: elsewhere the answer is always no.
    """
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked:
            raise _at_once(number)
        asked.append(number)

    before = [signal.signal(number, note) for number in _SIGNALS]
    try:
        yield lambda: bool(asked)
    except Interrupted as stopped:
        stopped.number = asked[0] if asked else stopped.number  # of several processes, one was asked
        raise
    finally:
        for number, handler in zip(_SIGNALS, before, strict=True):
            signal.signal(number, handler)
    if asked:  # after the last step there was nothing left to stop
        raise _at_once(asked[0])


def _at_once(number: int) -> KeyboardInterrupt:
    stop = KeyboardInterrupt()
    stop.number = number  # type: ignore[attr-defined]
    return stop
