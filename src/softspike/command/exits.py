"""How a command ends: one sentence and a code for whatever goes wrong, with how to go on."""

import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from softspike.visible import visible

__all__ = ["again", "plain_errors"]


@contextmanager
def plain_errors(run: Path | None = None, hint: str = "") -> Iterator[None]:
    """One sentence each for wrong input (exit 2), failed work (1) and interruptions, with how to go on (130, 143)."""
    with warnings.catch_warnings(), _termination_raises():
        warnings.showwarning = _show
        try:
            yield
        except KeyboardInterrupt as stop:
            saved = f" after step {stop.step}, which is saved" if hasattr(stop, "step") else ""
            _fail(f"interrupted{saved}{hint if _is_run(run) else ''}", 128 + getattr(stop, "number", signal.SIGINT))
        except ValueError as error:
            _fail(str(error), 2)
        except OSError as error:
            _fail(f"{error}{hint if _is_run(run) else ''}", 1)
        except RuntimeError as error:
            _fail(str(error), 1)


def _is_run(path: Path | None) -> bool:
    return path is not None and (path / "config.json").exists()


@contextmanager
def _termination_raises() -> Iterator[None]:
    """SIGTERM outside training is Ctrl-C with another exit code."""

    def terminated(number: int, frame: FrameType | None) -> None:
        stop = KeyboardInterrupt()
        stop.number = number  # type: ignore[attr-defined]
        raise stop

    if threading.current_thread() is not threading.main_thread():  # no other thread may set a handler
        yield
        return
    before = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_shown = warnings.showwarning


def _show(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Our own warnings are sentences like our errors; of several processes, one says them."""
    if not category.__module__.startswith("softspike"):
        _shown(message, category, filename, lineno, file, line)
    elif os.environ.get("RANK", "0") == "0":
        _say(str(message))


def _fail(message: str, code: int) -> None:
    # Of several processes that were given the same wrong input, one says so.
    if code != 2 or os.environ.get("RANK", "0") == "0":
        _say(message)
    raise SystemExit(code)


def _say(sentence: str) -> None:
    """On one line, with whatever file or label it quotes made harmless."""
    print(f"softspike: {visible(' '.join(sentence.split()))}", file=sys.stderr)


def again(*words: object, options: Iterable[tuple[str, object]] = ()) -> str:
    """How to go on, as it can be pasted into a shell; options without a value are left out."""
    given = [str(word) for option in options if option[1] is not None for word in option]
    return f"; go on with: {shlex.join([*_started(), *map(str, words), *given, '--resume'])}"


def _started() -> list[str]:
    """How this process was started: by torchrun, with as many others here as there are now, or alone."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        return ["softspike"]
    return ["torchrun", "--nproc-per-node", os.environ.get("LOCAL_WORLD_SIZE", "1"), "-m", "softspike"]
