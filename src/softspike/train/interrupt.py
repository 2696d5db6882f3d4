"""Ctrl-C while training: the step at hand is finished and saved, then training stops."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Interrupted", "stop_on_interrupt"]


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and did, after `step` steps, all of them saved."""

    def __init__(self, step: int):
        super().__init__(f"interrupted after step {step}")
        self.step = step


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed; pressed a second time, it stops everything at once.

    Python delivers signals to the main thread only: elsewhere the answer is always no.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def note(number: int, frame: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
    if asked.is_set():  # after the last step there was nothing left to stop
        raise KeyboardInterrupt
