"""The second phase: every trained cell measured, from its file, and its dictionary kept."""

import time
from collections.abc import Sequence

import torch

from softspike.generator import atoms_of
from softspike.reproduce.cell import Cell
from softspike.reproduce.experiment import Experiment
from softspike.reproduce.limit import Limit
from softspike.reproduce.provenance import provenance
from softspike.reproduce.setting import Data, Setting
from softspike.reproduce.store import Store

__all__ = ["measure_cells"]


def measure_cells(
    experiment: Experiment, cells: Sequence[Cell], setting: Setting, data: Data, store: Store, device: torch.device,
    limit: Limit,
) -> None:  # fmt: skip
    """Measure the trained cells that have no figures of this kind yet."""
    for number, cell in enumerate(cells, start=1):
        limit.check()
        print(f"[{number} of {len(cells)}] measuring {cell.name}", flush=True)
        coder = cell.build(setting.study).coder
        story = store.load(cell.name, coder)
        coder.to(device)
        atoms = atoms_of(coder.generator).cpu().numpy()
        began = time.monotonic()
        figures = None if story["diverged"] else experiment.measure(coder, cell, data, setting)
        seconds = time.monotonic() - began
        limit.learn(1, seconds)
        measured = {"seconds": round(seconds, 1), **provenance(device)}
        store.keep_dictionaries({cell.name: atoms})
        store.record(experiment.kind, cell.name, {"training": story, "measured": measured, "figures": figures})
