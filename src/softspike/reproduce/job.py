"""What `softspike reproduce` does: train what is missing, measure it, write and print the table."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import torch

from softspike.fitting import pick_device
from softspike.report.grid import markdown, print_grid
from softspike.reproduce.asked import Asked
from softspike.reproduce.cell import Cell
from softspike.reproduce.dictionaries import Dictionaries
from softspike.reproduce.experiment import Experiment, Scope
from softspike.reproduce.jaccard import Jaccard
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.measuring import measure_cells
from softspike.reproduce.provenance import provenance
from softspike.reproduce.rivals import figures_of, solve_rivals
from softspike.reproduce.rows import rows_of
from softspike.reproduce.setting import load_data
from softspike.reproduce.snr import GradientSnr
from softspike.reproduce.store import Store
from softspike.reproduce.table1 import Table1
from softspike.reproduce.table2 import Table2
from softspike.reproduce.training import train_cells
from softspike.run import RunError, write_atomically

__all__ = ["EXPERIMENTS", "reproduce_job"]

EXPERIMENTS = {e.name: e for e in (Table1(), Table2(), GradientSnr(), Jaccard(), Dictionaries())}


def reproduce_job(what: str, asked: Asked) -> None:
    """One table or figure; what an earlier call finished is taken from its folder."""
    experiment, limit = EXPERIMENTS[what], Limit(asked.limit_minutes)
    scope = asked.scope_of(experiment)
    device = pick_device(asked.device)
    if device.type == "cpu":
        torch.set_num_threads(1)  # at this size a second thread gains little and loses much beside other work
    if asked.together is not None and asked.together < 1:
        raise ValueError(f"--together is {asked.together}, expected a whole number ≥ 1")
    together = asked.together or (1 if device.type == "cpu" else 1000)
    print(f"{experiment.title}\n{scope.setting.label}", flush=True)
    data = load_data(scope.setting, asked.data, device)
    store, cells = Store(asked.out, asked.cells, asked.others), experiment.cells(scope)
    with store.opened(scope.setting, data.fingerprint):
        _refuse_strangers(cells, store, experiment, scope)
        left = _unmeasured(cells, store, experiment)
        try:
            train_cells(left, scope.setting.study, data, store, device, together, limit)
            if not asked.train_only:
                measure_cells(experiment, left, scope.setting, data, store, device, limit)
                solve_rivals(cells, store, data, limit)
        except OutOfTime:
            _write(experiment, cells, scope, store, device)
            raise RuntimeError(_stopped(asked, store, experiment, left)) from None
        if asked.train_only:
            print(f"{len(left)} cells are trained in {store.cells.path}; leave out --train-only to measure them")
        else:
            _write(experiment, cells, scope, store, device)


def _refuse_strangers(cells: Iterable[Cell], store: Store, experiment: Experiment, scope: Scope) -> None:
    """Figures of cells with these names but other conventions; records from before these were recorded are taken."""
    done = store.measured(experiment.kind)
    for cell in cells:
        before = done.get(cell.name, {}).get("training", {}).get("conventions")
        if before not in (None, cell.digest(scope.setting.study)):
            raise RunError(
                f"{cell.name} was measured under other conventions of that name, in {store.out.path} or a folder of "
                "--from; choose other folders"
            )


def _unmeasured(cells: Iterable[Cell], store: Store, experiment: Experiment) -> list[Cell]:
    """Each once: some cells are the same under either convention."""
    done = store.measured(experiment.kind)
    return list({cell.name: cell for cell in cells if cell.name not in done}.values())


def _stopped(asked: Asked, store: Store, experiment: Experiment, left: Sequence[Cell]) -> str:
    trained = sum(store.trained(cell.name) for cell in left)
    measured = len(left) - len(_unmeasured(left, store, experiment))
    return (
        f"stopped at the limit of {asked.limit_minutes:g} minutes: of {len(left)} missing cells {trained} are trained "
        f"and {measured} measured; run the same command again to go on"
    )


def _write(experiment: Experiment, cells: Sequence[Cell], scope: Scope, store: Store, device: torch.device) -> None:
    """Terminal, Markdown, JSON, picture: of what has been measured so far."""
    rows = rows_of(cells, figures_of(experiment, store))
    if not rows:
        return
    atoms, out = store.dictionaries(), store.out.path
    report = experiment.report(rows, scope.setting, atoms)
    head = f"# {experiment.title}\n\n{scope.setting.label}\n\n"
    text = head + "\n".join(markdown(grid) for grid in report.grids) + "".join(f"\n{s}\n" for s in report.findings)
    write_atomically(out / f"{experiment.name}.md", text.encode())
    content = {"title": experiment.title, "setting": scope.setting.plain(), **provenance(device)}
    content |= {"tables": [asdict(grid) for grid in report.grids], "findings": list(report.findings)}
    write_atomically(
        out / f"{experiment.name}.json", json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"
    )
    drawn = experiment.draw(rows, scope.setting, out / f"{experiment.name}.png", atoms)
    for grid in report.grids:
        print_grid(grid)
    print("".join(f"\n{sentence}" for sentence in report.findings))
    pictures = str(drawn[0]) if len(drawn) == 1 else f"{len(drawn)} pictures in {out / experiment.name}"
    print(
        f"\n{scope.setting.label}\nwrote {out / experiment.name}.md, .json, measured-{experiment.kind}.json; {pictures}"
    )
