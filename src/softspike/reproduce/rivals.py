"""The third phase: what OMP and FISTA reach on a cell's dictionary at its count. No model is needed any more."""

import time
from collections.abc import Sequence
from typing import Any

import torch

from softspike.metric import matched_solvers
from softspike.reproduce.cell import Cell
from softspike.reproduce.experiment import Experiment
from softspike.reproduce.limit import Limit
from softspike.reproduce.provenance import provenance
from softspike.reproduce.rows import figure_at
from softspike.reproduce.setting import Data
from softspike.reproduce.store import Store

__all__ = ["RIVALS", "figures_of", "solve_rivals"]

RIVALS = "rivals"  # the kind of these measurements
_SOLVED = 2000  # validation patches


def solve_rivals(cells: Sequence[Cell], store: Store, data: Data, limit: Limit) -> None:
    """Of the measured cells with sparse codes, those that have no figures of this kind yet. Always on the CPU, where
    the solvers are compiled: seconds for each cell, where a GPU takes minutes."""
    x = data.valid[:_SOLVED].cpu()
    audited, done, kept = store.measured("audit"), store.measured(RIVALS), store.dictionaries()
    left = [name for name in dict.fromkeys(cell.name for cell in cells) if name not in done and name in kept]
    for number, name in enumerate(left, start=1):
        count = _count(audited.get(name, {}))
        if count is None:
            continue
        limit.check()
        print(f"[{number} of {len(left)}] OMP and FISTA on the dictionary of {name}", flush=True)
        atoms, began = torch.from_numpy(kept[name]).float(), time.monotonic()
        figures = matched_solvers(atoms, x, count)._asdict()
        seconds = time.monotonic() - began
        limit.learn(1, seconds)
        measured = {"seconds": round(seconds, 1), **provenance(torch.device("cpu"))}
        store.record(RIVALS, name, {"training": audited[name]["training"], "measured": measured, "figures": figures})


def _count(record: dict[str, Any]) -> float | None:
    """The mean count to meet; None where codes are dense, or nothing is active, or nothing was measured."""
    active, whole = (figure_at(record.get("figures"), path) for path in ("best_sample.active", "n_components"))
    return active if active and whole and active <= 0.5 * whole else None


def figures_of(experiment: Experiment, store: Store) -> dict[str, Any]:
    """name → record of all measured cells, with the rivals' figures under `matched`."""
    measured, rivals = store.measured(experiment.kind), store.measured(RIVALS)
    for name in measured.keys() & rivals.keys():
        if measured[name]["figures"] is not None:
            measured[name]["figures"]["matched"] = rivals[name]["figures"]
    return measured
