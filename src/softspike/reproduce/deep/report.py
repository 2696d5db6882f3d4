"""What a study has measured so far, written out: a page for its own folder, or one for the documentation."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from softspike.report.grid import Grid, markdown, print_grid
from softspike.reproduce.cell import VARIANTS
from softspike.reproduce.deep.figures import draw_curves
from softspike.reproduce.deep.findings import findings
from softspike.reproduce.deep.grids import dimension_grid, measures_grid, share_grid
from softspike.reproduce.deep.learned import learned_part
from softspike.reproduce.deep.rows import Records, conventions_in
from softspike.reproduce.deep.setting import SETTINGS, DeepSetting
from softspike.reproduce.deep.store import DeepStore
from softspike.run import write_atomically

__all__ = ["write_deep_page", "write_results"]

_HEAD = """\
# The paper's deep study, repeated

After Fallah & Rozell, *Variational Sparse Coding with Learned Thresholding* (ICML 2022): the same posteriors,
thresholds and objective with convolutional encoders and generators. This page was written by `softspike reproduce
deep-page` from the files that `softspike reproduce fashion-mnist` and `celeba` left; no figure on it is typed by hand.
Each cell says how long it was trained: where that is less than the paper's 300 epochs, or on fewer images, its error is
no fair match.

The Fréchet distance is named after the network whose features it compares. Without a user's Inception weights it is a
classifier of the data's own attributes, trained by softspike; its values can be compared within one table only, and not
with published FID.
"""


def write_results(store: DeepStore) -> None:
    """results.md and pictures in the study's folder; the tables are printed."""
    measured = store.measured()
    if not measured:
        return
    setting = _setting(store)
    for grid in _grids(setting, measured):
        print_grid(grid)
    text = f"# {setting.title}\n\n{_part(store, store.path, setting.name)}"
    write_atomically(store.path / "results.md", text.encode())
    print(f"\nwrote {store.path}/results.md, {len(measured)} cells measured")


def write_deep_page(folders: Sequence[Path], page: Path) -> None:
    """Markdown at `page`, pictures beside it; one part for each folder."""
    page.parent.mkdir(parents=True, exist_ok=True)
    parts = [_HEAD]
    for path in folders:
        store = DeepStore(path)
        setting = _setting(store)
        epochs = store.config()["epochs"]
        stem = f"{page.stem}-{setting.name}-{epochs}"
        figures = {"study": store.config(), "cells": store.measured()}
        text = json.dumps(figures, indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(page.with_name(f"{stem}.json"), text.encode() + b"\n")
        parts.append(
            f"## {setting.title}, {epochs} epochs\n\n{_part(store, page.parent, stem, originals=setting.public)}"
        )
    write_atomically(page, "\n".join(parts).encode())
    print(f"wrote {page}")


def _setting(store: DeepStore) -> DeepSetting:
    config = store.config()
    if config.get("set") not in SETTINGS:
        raise ValueError(f"{store.path} holds no deep study: its set is {config.get('set')!r}")
    setting = SETTINGS[config["set"]]
    return setting.quickly() if config.get("quick") else setting


def _records(measured: Mapping[str, Any], conventions: str) -> Records:
    """Those of a convention, and those of methods for which there is but one."""
    alike = ("gaussian", "centred-gaussian", "centred-laplacian")
    chosen = [r["cell"]["conventions"] == conventions or r["cell"]["method"] in alike for r in measured.values()]
    return Records([record for record, wanted in zip(measured.values(), chosen, strict=True) if wanted])


def _grids(setting: DeepSetting, measured: Mapping[str, Any]) -> list[Grid]:
    found = []
    for name in conventions_in(measured):
        records = _records(measured, name)
        found += [dimension_grid(setting, records), share_grid(setting, records), measures_grid(records)]
    return found


def _part(store: DeepStore, folder: Path, stem: str, originals: bool = True) -> str:
    """One study as Markdown; its pictures go into the folder, their names begin with the stem; `originals` says whether
    images of the data itself are among them."""
    setting, measured = _setting(store), store.measured()
    lines = [f"{store.config()['label']}.", ""]
    several = len(measured) > 1  # one point needs neither curves nor a table of its neighbours
    for name in conventions_in(measured):
        records = _records(measured, name)
        own = f"{stem}-{name}"
        lines += [f"### With {VARIANTS[name].title}", ""]
        lines += [f"- {sentence}" for sentence in findings(setting, records)]
        if (
            several and find_spec("matplotlib") is not None
        ):  # part of the extras: a page written elsewhere has the curves
            curves = draw_curves(setting, records, folder / f"{own}.png")
            lines += ["", f"![error by dimension and by share]({curves.name})", ""]
        lines += ["", markdown(dimension_grid(setting, records))]
        if any(share != setting.share for _, _, share in records.cells()):
            lines.append(markdown(share_grid(setting, records)))
        lines += [markdown(measures_grid(records)), *learned_part(store, setting, name, folder, own, originals)]
    lines += ["### How it was run", "", *_commands(measured), markdown(_runs(measured))]
    return "\n".join(lines)


def _commands(measured: Mapping[str, Any]) -> list[str]:
    """As they were typed, each once."""
    commands = dict.fromkeys(record["training"]["command"] for record in measured.values())
    return ["```", *commands, "```", ""]


def _runs(measured: Mapping[str, Any]) -> Grid:
    rows = []
    for name, record in measured.items():
        story = record["training"]
        rate = f"{1000 * story['seconds'] / max(story['steps'], 1):.1f} ms"
        rows.append([name, str(story["epochs"]), f"{story['steps']:,}", f"{story['seconds']:.0f} s", rate,
                     story["precision"], story["device"], story["commit"] or "–"])  # fmt: skip
    columns = ["cell", "epochs", "steps", "training", "per step", "precision", "device", "commit"]
    return Grid("Training", columns, rows)
