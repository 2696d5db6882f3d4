"""How the figures of a page came about: which command trained and measured how much, where, and how long it took."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from softspike.report.grid import Grid
from softspike.reproduce.store import Store

__all__ = ["run_grids"]

Story = Mapping[str, Any]

_PATHS = """\
Of paths, commands show the last part. One that was run again in a folder with everything trained and measured, on a
CPU, solved OMP and FISTA on the dictionaries that are kept there, and nothing else."""


def run_grids(stores: Sequence[Store], kinds: Sequence[str]) -> list[Grid]:
    """One table of training and one of measuring; `kinds` are those of the measurements."""
    records = [(name, record) for store in stores for kind in kinds for name, record in store.measured(kind).items()]
    trained = _distinct((name, record["training"]) for name, record in records)
    measured = [record["measured"] for _, record in records if "measured" in record]
    columns = ["command", "commit", "device", "with"]
    training = Grid(
        "Training",
        [*columns, "steps", "cells on this page", "minutes of training"],
        _lines([story for _, story in trained], _steps, lambda story: story["seconds"] / story["together"]),
        [_shared(trained), _notes(story for _, story in trained)],
    )
    measuring = Grid(
        "Measuring",
        [*columns, "measurements on this page", "minutes"],
        _lines(measured, lambda _: [], lambda story: story["seconds"]),
        [_PATHS, _unclean([*(story for _, story in trained), *measured])],
    )
    return [training, measuring] if measured else [training]


def _distinct(stories: Iterable[tuple[str, Story]]) -> list[tuple[str, Story]]:
    """How each cell was trained; twice where it was trained twice, for one kind of measurement and for another."""
    found = {(name, json.dumps(story, sort_keys=True)): (name, story) for name, story in stories}
    return list(found.values())


def _steps(story: Story) -> list[str]:
    return [f"{story['steps']:,}"]


def _lines(
    stories: Iterable[Story], others: Callable[[Story], list[str]], seconds: Callable[[Story], float]
) -> list[list[str]]:
    """Stories with the same command, commit and machine in one line; cells trained together share their time."""
    groups: dict[tuple[str, ...], list[Story]] = {}
    for story in stories:
        where = story["commit"] or "–", story["device"], f"torch {story['torch']}"
        groups.setdefault((f"`{story['command']}`", *where, *others(story)), []).append(story)
    return [[*key, str(len(own)), f"{sum(map(seconds, own)) / 60:.1f}"] for key, own in groups.items()]


def _shared(trained: Sequence[tuple[str, Story]]) -> str:
    """Whether every cell was trained once, and which were not."""
    times: dict[tuple[str, int], int] = {}
    for name, story in trained:
        times[name, story["steps"]] = times.get((name, story["steps"]), 0) + 1
    again: dict[str, int] = {}
    for (name, _), n in times.items():
        if n > 1:
            family = name.rpartition(".s")[0]
            again[family] = again.get(family, 0) + 1
    shares = "The minutes of cells that were trained together are shared among them."
    if not again:
        return f"Cells are shared between the tables and trained once. {shares}"
    named = ", ".join(f"{family} ({n} seeds)" if n > 1 else family for family, n in again.items())
    return (
        f"Cells are shared between the tables, but these were trained again for another kind of measurement: {named}. "
        f"{shares}"
    )


def _notes(stories: Iterable[Story]) -> str:
    """What the records say about themselves."""
    return " ".join(dict.fromkeys(story["note"] for story in stories if story.get("note")))


def _unclean(stories: Iterable[Story]) -> str:
    marked = any(str(story["commit"]).endswith("+") for story in stories)
    return "A + after a commit marks a tree with changes that were not committed." if marked else ""
