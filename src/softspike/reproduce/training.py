"""The first phase: every cell trained and saved, those of one shape together."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from softspike.data import TensorRows
from softspike.methods.published import Study
from softspike.report.progress import progress_shown
from softspike.reproduce.cell import BEST, Cell
from softspike.reproduce.limit import Limit
from softspike.reproduce.provenance import provenance
from softspike.reproduce.setting import Data
from softspike.reproduce.store import Store
from softspike.train import train_replicas

__all__ = ["train_cells"]


def train_cells(
    cells: Sequence[Cell], study: Study, data: Data, store: Store, device: torch.device, together: int, limit: Limit
) -> None:
    """Train the cells that have no file yet. A cell that diverges is saved as it ended: that is a result.

    Files of the others must be of the same steps, data and conventions: nothing is trained before that is known.
    """
    pending = [cell for cell in cells if not store.trained(cell.name)]
    shared = {"steps": study.n_steps, "data": data.fingerprint}  # what a trained cell records, with its conventions
    wanted = {cell.name: {**shared, "conventions": cell.digest(study)} for cell in cells}
    for cell in cells:
        if cell not in pending:
            store.check(cell.name, wanted[cell.name])
    done = len(cells) - len(pending)
    rows = TensorRows(data.train)
    for group in _groups(pending, study, together):
        limit.check(len(group))
        say = f"training {group[0].name}" if len(group) == 1 else f"training {len(group)} cells together"
        print(f"[{done + len(group)} of {len(cells)}] {say}: {', '.join(_methods(group))}", flush=True)
        built = [cell.build(study) for cell in group]
        began = time.monotonic()
        with progress_shown(True) as observers:
            ends = train_replicas(
                [b.coder for b in built], rows, built[0].recipe, seeds=[cell.seed for cell in group], device=device,
                observers=observers,
            )  # fmt: skip
        seconds = time.monotonic() - began
        limit.learn(len(group), seconds)
        story = {"seconds": round(seconds, 1), "together": len(group), **provenance(device)}
        for cell, (coder, _), end in zip(group, built, ends, strict=True):
            diverged = None if end is None else {"step": end.step, "cause": end.cause}
            if end is not None:
                print(f"{cell.name} diverged at step {end.step:,}: {end.cause}", flush=True)
            store.save(cell.name, coder, {**wanted[cell.name], **story, "diverged": diverged})
        done += len(group)


def _groups(cells: Sequence[Cell], study: Study, together: int) -> Iterator[list[Cell]]:
    """Cells whose models have parameters of the same shapes and objectives of the same kind, `together` at a time.

    For max-ELBO there are kernels that take several methods, conventions and J at once. Other objectives go through one
    batched pass, whose replicas differ in their seeds alone.
    """
    shapes: dict[str, Any] = {}  # of each method: they depend on nothing else
    alike: dict[Any, list[Cell]] = {}
    for cell in cells:
        if cell.method.name not in shapes:
            shapes[cell.method.name] = tuple(tuple(p.shape) for p in cell.build(study).coder.parameters())
        own = () if cell.sampling is BEST else (cell.method.name, cell.variant.name, cell.n_samples)
        alike.setdefault((shapes[cell.method.name], cell.sampling.name, own), []).append(cell)
    for group in alike.values():
        for first in range(0, len(group), together):
            yield group[first : first + together]


def _methods(group: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.method.name for cell in group))
