"""A live bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from softspike.train import Observer, Progress

__all__ = ["PlainLines", "ProgressBar", "decoding_shown", "progress_shown"]

_FIGURES = "unexplained {task.fields[error]:.3f} · active {task.fields[active]:.1f} · loss {task.fields[loss]:.4f}"


@contextmanager
def progress_shown(verbose: bool | None) -> Iterator[list[Observer]]:
    """The observer that suits the place: a bar on a terminal, lines if asked for elsewhere, otherwise nothing."""
    terminal = sys.stderr.isatty()
    if verbose is False or (verbose is None and not terminal):
        yield []
    elif not terminal:
        yield [PlainLines()]
    else:
        bar = ProgressBar()
        try:
            yield [bar]
        finally:
            bar.close()


class ProgressBar:
    """Steps, time left, reconstruction error and active components, on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def logged(self, progress: Progress) -> None:
        if self._bar is None:
            self._start(progress)
        loss = progress.loss
        self._bar.update(
            self._task,
            completed=progress.step,
            error=float(loss.misfit),
            active=float(loss.active),
            loss=float(loss.total),
        )

    def saved(self, progress: Progress) -> None: ...

    def close(self) -> None:
        """Leave the terminal as it was, however training ended."""
        if self._bar is not None:
            self._bar.stop()

    def _start(self, progress: Progress) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn(_FIGURES),
            console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._bar.add_task("training", total=progress.n_steps, error=0.0, active=0.0, loss=0.0)
        self._bar.start()


class PlainLines:
    """One line every few seconds: quiet enough for a log file."""

    def __init__(self, every_seconds: float = 10.0):
        self._every, self._last = every_seconds, time.monotonic()

    def logged(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= self._every or progress.step >= progress.n_steps:
            self._last = now
            loss = progress.loss
            print(
                f"step {progress.step}/{progress.n_steps}  loss {float(loss.total):.4f}  "
                f"unexplained {float(loss.misfit):.3f}  active {float(loss.active):.1f}",
                file=sys.stderr, flush=True,
            )  # fmt: skip

    def saved(self, progress: Progress) -> None: ...


@contextmanager
def decoding_shown() -> Iterator[Callable[[int, int], None] | None]:
    """For the reading of image sets: a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("decoding images, once"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("decoding", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
