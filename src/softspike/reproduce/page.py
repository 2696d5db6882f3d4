"""The page of results, written from what was measured: no figure on it is typed by hand."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softspike.report.grid import Grid, markdown
from softspike.reproduce import setting as settings
from softspike.reproduce.cell import METHODS, SAMPLINGS, SINGLE_SWITCHES, VARIANTS, Variant
from softspike.reproduce.experiment import Experiment, Scope
from softspike.reproduce.job import EXPERIMENTS
from softspike.reproduce.rows import rows_of
from softspike.reproduce.setting import Setting
from softspike.reproduce.store import Store
from softspike.run import write_atomically

__all__ = ["write_page"]

_HEAD = """\
# The paper's linear study, repeated and audited

{label}.

After Fallah & Rozell, *Variational Sparse Coding with Learned Thresholding* (ICML 2022). Each part shows first the
measures that tell good codes from bad ones, then the published measures with the paper's figures beside ours. *Scripts*
are the conventions of the authors' published scripts (dz/dμ = 2 on active units; log γ read as logit γ; the warm-up of
the spike-and-slab from 0.1 instead of 0, that of the Laplacian after 1,500 steps instead of at once), *equations* those
of the paper's text. This page was written by `softspike reproduce page` from the figures in the JSON files beside it.
{seeds}"""


def write_page(results: Sequence[Path], page: Path) -> None:
    """Markdown at `page`; beside it, under its name, the pictures and all measured figures as JSON."""
    store = Store(results[0], others=results[1:])
    setting = _setting(results)
    seeds = _seeds(store)
    scope = Scope(setting, _variants(store), seeds, list(METHODS.values()), list(SAMPLINGS.values()))
    page.parent.mkdir(parents=True, exist_ok=True)
    averaged = (
        f"Means are over the seeds {', '.join(map(str, seeds))}; ± is their standard deviation.\n" if seeds else ""
    )
    parts = [_HEAD.format(label=setting.label, seeds=averaged)]
    parts += [_part(experiment, scope, store, page) for experiment in EXPERIMENTS.values()]
    parts.append("## How it was run\n\n" + markdown(_runs(store)))
    write_atomically(page, "\n".join(parts).encode())
    for kind in filter(store.measured, _kinds()):
        content = json.dumps(store.measured(kind), indent=1, ensure_ascii=False)
        write_atomically(page.with_name(f"{page.stem}-{kind}.json"), content.encode() + b"\n")
    print(f"wrote {page}, its pictures and its figures as JSON")


def _part(experiment: Experiment, scope: Scope, store: Store, page: Path) -> str:
    rows = rows_of(experiment.cells(scope), store.measured(experiment.kind))
    head = f"## {experiment.title}\n\n"
    if not rows:
        return f"{head}Not measured yet: `softspike reproduce {experiment.name} --data IMAGES.mat -o OUT`.\n"
    atoms = store.dictionaries()
    report = experiment.report(rows, scope.setting, atoms)
    picture = page.with_name(f"{page.stem}-{experiment.name}.png")
    drawn = experiment.draw(experiment.pictured(rows), scope.setting, picture, atoms)
    findings = "".join(f"- {sentence}\n" for sentence in report.findings)
    width = "100%" if len(drawn) == 1 else "400"
    pictures = "\n".join(f'<img src="{p.relative_to(page.parent)}" alt="{p.stem}" width="{width}">' for p in drawn)
    return "\n".join([head + findings, *(markdown(grid) for grid in report.grids), pictures, ""])


def _setting(results: Sequence[Path]) -> Setting:
    """That of the folders; where they differ in length, the longest."""
    configs = [Store(path).out.config() for path in results]
    if len({config["quick"] for config in configs}) > 1:
        raise ValueError(f"{', '.join(map(str, results))} mix quick and full results; give folders of one kind")
    return (settings.QUICK if configs[0]["quick"] else settings.FULL).with_steps(
        max(config["steps"] for config in configs)
    )


def _seeds(store: Store) -> list[int]:
    """In the order in which they were first measured."""
    names = [name for kind in _kinds() for name in store.measured(kind)]
    return list(dict.fromkeys(int(found[1]) for name in names if (found := re.search(r"\.s(\d+)$", name))))


def _variants(store: Store) -> list[Variant]:
    """Those under which something was measured."""
    names = {name.split(".")[1].removesuffix("-subgradient") for kind in _kinds() for name in store.measured(kind)}
    found = [variant for name, variant in {**VARIANTS, **SINGLE_SWITCHES}.items() if name in names]
    return found or list(VARIANTS.values())[:1]  # FISTA and the Gaussian are the same under all


def _kinds() -> list[str]:
    return list(dict.fromkeys(experiment.kind for experiment in EXPERIMENTS.values()))


def _runs(store: Store) -> Grid:
    """Which command trained how many cells, where, from which commit, and how long it took."""
    cells: dict[str, Mapping[str, Any]] = {}
    for kind in _kinds():
        cells |= {name: record["training"] for name, record in store.measured(kind).items()}
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for story in cells.values():
        where = story["commit"] or "–", story["device"], f"torch {story['torch']}"
        key = story["command"], *where, f"{story['steps']:,}"
        groups.setdefault(key, []).append(story)
    lines = []
    for (command, *others), stories in groups.items():
        minutes = sum(story["seconds"] / story["together"] for story in stories) / 60
        lines.append([f"`{command}`", *others, str(len(stories)), f"{minutes:.1f}"])
    columns = ["command", "commit", "device", "with", "steps", "cells trained", "minutes of training"]
    return Grid("Training", columns, lines, ["Cells are shared between the tables and trained once."])
