"""A live bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softspike.data import Watch
from softspike.train import Observer, Progress
from softspike.visible import visible

__all__ = [
    "KeepingSaid", "PlainLines", "ProgressBar", "components_of", "decoding_shown", "progress_shown", "stages_shown",
]  # fmt: skip


@contextmanager
def progress_shown(verbose: bool | None, centred: bool = False, n_steps: int | None = None) -> Iterator[list[Observer]]:
    """The observer that suits the place: a bar on a terminal, lines if asked for elsewhere, otherwise nothing.

    Data that is `centred` and scaled has the variance 1, so what is explained of it is 1 − misfit; of other data the
    error itself is shown. `n_steps`, where they are known before the first of them is logged.
    """
    terminal = sys.stderr.isatty()
    if verbose is False or (verbose is None and not terminal):
        yield []
    elif not terminal:
        yield [PlainLines(centred=centred)]
    else:
        bar = ProgressBar(centred, n_steps)
        try:
            yield [bar]
        finally:
            bar.close()


class Pace:
    """Steps per second, over the time since the last time it was asked; smoothed, so that it can be read."""

    def __init__(self) -> None:
        self._last: tuple[int, float] | None = None
        self.rate: float | None = None

    def at(self, step: int) -> float | None:
        now, before = time.monotonic(), self._last
        self._last = step, now
        if before is not None and now > before[1] and step > before[0]:
            fresh = (step - before[0]) / (now - before[1])
            self.rate = fresh if self.rate is None else 0.7 * self.rate + 0.3 * fresh
        return self.rate


def components_of(progress: Progress) -> int:
    """Of the coder in training; 1 for a model that is none."""
    generator = getattr(progress.coder, "generator", None)
    return 1 if generator is None else int(generator.n_components)


def figures_of(progress: Progress, centred: bool) -> str:
    """loss · explained · active, of the batch at hand."""
    loss, misfit = progress.loss, float(progress.loss.misfit)
    share = float(loss.active) / components_of(progress)
    quality = f"explained {1 - misfit:.3f}" if centred else f"error {misfit:.4f}"
    return f"loss {float(loss.total):.4g} · {quality} · active {100 * share:.1f} %"


class ProgressBar:
    """Steps, steps per second, time left and the figures of the batch, on standard error."""

    def __init__(self, centred: bool = False, n_steps: int | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        self._pace, self._centred, self._last = Pace(), centred, dict[str, str]()
        # The bar itself takes what the figures leave: all of it fits into 80 columns.
        self._bar: Any = Bar(
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[speed]}", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[figures]}", table_column=Column(no_wrap=True)),
            console=Console(stderr=True), expand=True,
        )  # fmt: skip
        # Without a total it pulses until the first step is logged.
        self._task = self._bar.add_task("training", total=n_steps, speed="", figures="first steps …")
        self._bar.start()

    def logged(self, progress: Progress) -> None:
        rate = self._pace.at(progress.step)
        self._last = {
            "figures": figures_of(progress, self._centred), "speed": f"{rate:.3g} steps/s" if rate else "",
        }  # fmt: skip
        self._bar.update(self._task, completed=progress.step, total=progress.n_steps, **self._last)

    def saved(self, progress: Progress) -> None: ...

    def stage(self, name: str) -> None:
        self._bar.update(self._task, figures=f"{name} …", speed="")  # until it is closed

    def close(self) -> None:
        """Leave the terminal as it was, however training ended, and the figures of the last step on it."""
        self._bar.update(self._task, **self._last)
        self._bar.stop()


class PlainLines:
    """One line every few seconds: quiet enough for a log file."""

    def __init__(self, every_seconds: float = 10.0, centred: bool = False):
        self._every, self._last, self._pace, self._centred = every_seconds, time.monotonic(), Pace(), centred

    def logged(self, progress: Progress) -> None:
        now, rate = time.monotonic(), self._pace.at(progress.step)
        if now - self._last >= self._every or progress.step >= progress.n_steps:
            self._last = now
            speed = f"  {rate:.3g} steps/s" if rate else ""
            figures = figures_of(progress, self._centred).replace(" · ", "  ")
            print(f"step {progress.step}/{progress.n_steps}  {figures}{speed}", file=sys.stderr, flush=True)

    def saved(self, progress: Progress) -> None: ...

    def stage(self, name: str) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            print(f"{name} …", file=sys.stderr, flush=True)


class StageLines:
    """What was done and how long it took, on standard error."""

    def __init__(self) -> None:
        self._stage, self._begun = "", 0.0

    def begin(self, stage: str) -> None:
        self.end()
        self._stage, self._begun = visible(stage), time.monotonic()

    def end(self) -> None:
        if self._stage:
            print(f"{self._stage}, {time.monotonic() - self._begun:.1f} s", file=sys.stderr, flush=True)


@contextmanager
def stages_shown(total: int) -> Iterator[Callable[[str], None]]:
    """A bar over `total` stages of work, on a terminal; the function it gives names the stage that begins.

    Elsewhere a line for each that is done, with its seconds.
    """
    if not sys.stderr.isatty():
        lines = StageLines()
        yield lines.begin
        lines.end()
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total + 1)

        def told(stage: str) -> None:
            bar.update(task, advance=1, description=visible(stage))

        yield told


class KeepingSaid(Watch):
    """A line on standard error where decoded images were written to the cache, which grows with every set."""

    def decoded(self, done: int, total: int) -> None: ...

    def kept(self, path: Path, n_bytes: int) -> None:
        kept = f"kept {n_bytes / 1e6:.1f} MB of decoded images in {path}"
        print(visible(f"{kept} for the next time; it may be deleted"), file=sys.stderr, flush=True)


class DecodingBar(Watch):
    """How many images are decoded, of how many; then the line."""

    def __init__(self, bar: Any):
        self._bar, self._task = bar, bar.add_task("decoding", total=None)

    def decoded(self, done: int, total: int) -> None:
        self._bar.start()  # not before: most data has nothing to decode
        self._bar.update(self._task, completed=done, total=total)

    def kept(self, path: Path, n_bytes: int) -> None:
        self._bar.stop()
        KeepingSaid().kept(path, n_bytes)


@contextmanager
def decoding_shown() -> Iterator[Watch]:
    """For the reading of image sets: a bar on a terminal, and a line everywhere about what is left on the disk."""
    if not sys.stderr.isatty():
        yield KeepingSaid()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("decoding images, once"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True)
    try:
        yield DecodingBar(bar)
    finally:
        bar.stop()
