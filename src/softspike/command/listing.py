"""What is in run folders, told in the terminal: `softspike runs` and `softspike show`."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from softspike.estimator import SparseCoder
from softspike.generator import LinearGenerator
from softspike.report.figure import dictionary_order
from softspike.report.last import last_figures, last_lines
from softspike.report.pixels import drawn_as, size_of
from softspike.report.record import seconds_of, stored_figures
from softspike.report.table import Line, print_grid, print_table, summary_lines
from softspike.report.terminal import half_blocks, inline_picture, small_mosaic
from softspike.report.words import duration
from softspike.run import RunError, RunFolder

__all__ = ["describe_run", "find_runs", "runs_job", "show_job", "state_of"]

_DEPTH = 4  # folders below the one asked about
_BLOCKS = 64  # values of an atom drawn in blocks: 8 × 8
_COLUMNS = ("run", "method", "atoms", "data", "steps", "state", "explained", "active", "asked", "dead", "time")


class State(NamedTuple):
    word: str  # finished, running, stopped or diverged
    step: int
    n_steps: int
    why: str = ""


def runs_job(folder: Path) -> None:
    """A table of the runs below a folder."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder, expected one that holds runs; check the path")
    rows = [describe_run(run) for run in find_runs(folder)]
    if not rows:
        print(f"no runs in {folder} or up to {_DEPTH} folders below it; softspike train makes one")
        return
    print_grid(_COLUMNS, rows)


def show_job(path: Path) -> None:
    """The summary of a run, and its dictionary where the terminal can show it."""
    run = RunFolder(path)
    config, state = run.coder_config(), state_of(run)
    settings = config.get("estimator") or {}
    known = config.get("data") or {}
    data, shape = known.get("name") or "not recorded", known.get("image_shape")
    log = run.metrics()
    summary = run.optional_json("summary.json")
    seconds = _took(log, summary)
    lines: list[Line] = [
        ("method", str(settings.get("method")), ""),
        ("data", str(data), size_of(shape, config.get("n_features"))),
        ("steps", f"{state.step} of {state.n_steps}", " · ".join(filter(None, [state.word, state.why, seconds]))),
    ]
    figures = stored_figures(summary)
    if figures and summary:
        lines += summary_lines(figures.summary, summary.get("target_active"), figures.baselines)
    else:
        lines += last_lines(config, log)
    on = f" on {summary['on']}" if summary and summary.get("on") else ""
    print_table(f"{path}{on}", lines)
    if sys.stdout.isatty():
        _show_dictionary(run, config)


def find_runs(folder: Path) -> Iterator[RunFolder]:
    """Run folders at or below a folder, by name; hidden folders and those inside runs are passed over."""
    start = len(folder.parts)
    for place, below, files in os.walk(folder):
        here = Path(place)
        if "config.json" in files and _is_run(RunFolder(here)):
            below.clear()
            yield RunFolder(here)
        elif len(here.parts) - start >= _DEPTH:
            below.clear()
        below[:] = sorted(name for name in below if not name.startswith(".") and name != "node_modules")


def state_of(run: RunFolder) -> State:
    """Where a run stands."""
    settings, log = run.config().get("estimator") or {}, run.metrics()
    saved = [int(path.stem.removeprefix("step-")) for path in run.checkpoints()[:1]]
    step, n_steps = max([*saved, int(log[-1]["step"]) if log else 0]), int(settings.get("max_steps") or 0)
    failed = run.optional_json("diverged.json")
    if run.in_use():
        return State("running", step, n_steps)
    if failed:
        return State("diverged", step, n_steps, f"at step {failed.get('step')}: {failed.get('cause')}")
    if (run.path / "model.safetensors").exists():
        return State("finished", int(run.config().get("n_steps") or step), n_steps)
    return State("stopped", step, n_steps)


def _is_run(run: RunFolder) -> bool:
    try:
        run.coder_config()
    except RunError:
        return False
    return True


def describe_run(run: RunFolder) -> tuple[str, ...]:
    """Its line of the table."""
    config, state, log = run.coder_config(), state_of(run), run.metrics()
    settings, data = config.get("estimator") or {}, config.get("data") or {}
    stored = run.optional_json("summary.json") or {}
    figures = stored_figures(stored)
    summary, last = figures.summary if figures else None, last_figures(config, log)
    return (
        str(run.path), str(settings.get("method")),
        str(settings.get("n_components") or config.get("n_features")),
        Path(str(data["name"])).name if data.get("name") else "",
        f"{state.step}/{state.n_steps}", state.word,
        f"{summary.explained_variance:.3f}" if summary else "" if last.explained is None else f"≈{last.explained:.2f}",
        f"{summary.active:.2f}" if summary else "" if last.active is None else f"≈{last.active:.1f}",
        f"{stored['target_active']:.1f}" if isinstance(stored.get("target_active"), int | float) else "",
        str(summary.dead) if summary else "",
        _took(log, stored),
    )  # fmt: skip


def _took(log: Sequence[Mapping[str, Any]], summary: Mapping[str, Any] | None) -> str:
    seconds = seconds_of(log, summary)
    return "" if seconds is None else duration(seconds)


def _show_dictionary(run: RunFolder, config: dict[str, Any]) -> None:
    from rich.console import Console

    picture = run.path / "dictionary.png"
    inline = inline_picture(picture.read_bytes()) if picture.is_file() else None
    if inline:
        sys.stdout.write(inline)
        return
    latest = run.latest()
    if latest is None:
        return
    console = Console()
    coder = SparseCoder.restored(config, latest[1], "cpu", str(run.path))
    if not isinstance(coder.coder_.generator, LinearGenerator):
        print(f"its generator is a network without atoms; pictures of it are in {run.path}")
        return
    shape = (config.get("data") or {}).get("image_shape")
    drawn = drawn_as(coder.n_features_in_, tuple(shape) if shape else None, _BLOCKS)
    if drawn.kind == "bars":  # bars of one character would say nothing
        print(f"its atoms are not pictures; to see them as bars: softspike report {shlex.quote(str(run.path))}")
        return
    atoms = np.asarray(coder.components_)
    # Two pixels per line of text; half a screen of them.
    small = small_mosaic(atoms[dictionary_order(atoms)], drawn, console.width, max(console.height, 24))
    console.print(half_blocks(small, colours=console.color_system is not None), soft_wrap=True)
