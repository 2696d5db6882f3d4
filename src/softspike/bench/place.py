"""Where the results of a bench go, found out before anything is measured."""

import json
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from softspike.disk import named

__all__ = ["Targets", "targets_of"]


class Targets(NamedTuple):
    page: Path
    content: Path


def targets_of(out: Path) -> Targets:
    """OUT.md and OUT.json, in a folder that can be written into; ValueError where one of them is something else."""
    stem = out.with_suffix("") if out.suffix in (".md", ".json") else out
    page, content = (stem.with_name(stem.name + ending) for ending in (".md", ".json"))
    for target in (page, content):
        if target.is_dir():
            raise ValueError(f"{target} is a folder, expected a file for the results; give another name")
    if content.exists() and not _holds_results(content):
        raise ValueError(f"{content} is there and holds no results of a bench; give another name")
    stem.parent.mkdir(parents=True, exist_ok=True)
    with named(stem.parent), TemporaryFile(dir=stem.parent):
        pass
    return Targets(page, content)


def _holds_results(path: Path) -> bool:
    try:
        return {"machine", "size", "rows"} <= json.loads(path.read_bytes()).keys()
    except (ValueError, AttributeError):
        return False
