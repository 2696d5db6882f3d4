"""What `softspike reproduce` does: train what is missing, measure it, write and print the table."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from softspike.fitting import pick_device
from softspike.report.grid import markdown, print_grid
from softspike.reproduce.cell import METHODS, VARIANTS, Cell, Method, Variant
from softspike.reproduce.dictionaries import Dictionaries
from softspike.reproduce.experiment import Experiment, Scope
from softspike.reproduce.jaccard import Jaccard
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.measuring import measure_cells
from softspike.reproduce.provenance import provenance
from softspike.reproduce.rows import rows_of
from softspike.reproduce.setting import FULL, QUICK, load_data
from softspike.reproduce.snr import GradientSnr
from softspike.reproduce.store import Store
from softspike.reproduce.table1 import Table1
from softspike.reproduce.table2 import Table2
from softspike.reproduce.training import train_cells
from softspike.run import write_atomically

__all__ = ["EXPERIMENTS", "Asked", "reproduce_job"]

EXPERIMENTS = {e.name: e for e in (Table1(), Table2(), GradientSnr(), Jaccard(), Dictionaries())}


@dataclass(frozen=True)
class Asked:
    """The options of the command, as given."""

    out: Path
    data: Path | None = None
    quick: bool = False
    device: str = "auto"
    seeds: str | None = None
    steps: int | None = None
    conventions: str | None = None
    methods: str | None = None
    together: int | None = None
    cells: Path | None = None
    others: Sequence[Path] = ()
    limit_minutes: float | None = None
    train_only: bool = False

    def scope(self) -> Scope:
        setting = (QUICK if self.quick else FULL).with_steps(self.steps)
        return Scope(
            setting, _variants(self.conventions, self.quick), _seeds(self.seeds, self.quick), _methods(self.methods)
        )


def reproduce_job(what: str, asked: Asked) -> None:
    """One table or figure; what an earlier call finished is taken from its folder."""
    experiment, scope, limit = EXPERIMENTS[what], asked.scope(), Limit(asked.limit_minutes)
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
        left = _unmeasured(cells, store, experiment)
        try:
            train_cells(left, scope.setting.study, data, store, device, together, limit)
            if not asked.train_only:
                measure_cells(experiment, left, scope.setting, data, store, device, limit)
        except OutOfTime:
            _write(experiment, cells, scope, store, device)
            raise RuntimeError(_stopped(asked, store, experiment, left)) from None
        if asked.train_only:
            print(f"{len(left)} cells are trained in {store.cells.path}; leave out --train-only to measure them")
        else:
            _write(experiment, cells, scope, store, device)


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
    rows = rows_of(cells, store.measured(experiment.kind))
    if not rows:
        return
    report, out = experiment.report(rows, scope.setting), store.out.path
    head = f"# {experiment.title}\n\n{scope.setting.label}\n\n"
    text = head + "\n".join(markdown(grid) for grid in report.grids) + "".join(f"\n{s}\n" for s in report.findings)
    write_atomically(out / f"{experiment.name}.md", text.encode())
    content = {"title": experiment.title, "setting": scope.setting.plain(), **provenance(device)}
    content |= {"tables": [asdict(grid) for grid in report.grids], "findings": list(report.findings)}
    write_atomically(
        out / f"{experiment.name}.json", json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n"
    )
    drawn = experiment.draw(rows, scope.setting, out / f"{experiment.name}.png", store.dictionaries())
    for grid in report.grids:
        print_grid(grid)
    print("".join(f"\n{sentence}" for sentence in report.findings))
    pictures = str(drawn[0]) if len(drawn) == 1 else f"{len(drawn)} pictures in {out / experiment.name}"
    print(
        f"\n{scope.setting.label}\nwrote {out / experiment.name}.md, .json, measured-{experiment.kind}.json; {pictures}"
    )


# ── options ──


def _seeds(text: str | None, quick: bool) -> list[int]:
    if text is None:
        return [0] if quick else [0, 1337, 747]
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--seeds is {text!r}, expected whole numbers with commas, as in 0,1337,747") from None


def _variants(text: str | None, quick: bool) -> list[Variant]:
    if text is None:
        text = "scripts" if quick else "both"
    if text == "both":
        return list(VARIANTS.values())
    if text not in VARIANTS:
        raise ValueError(f"--conventions is {text!r}, expected one of: {', '.join([*VARIANTS, 'both'])}")
    return [VARIANTS[text]]


def _methods(text: str | None) -> list[Method]:
    if text is None:
        return list(METHODS.values())
    for name in text.split(","):
        if name not in METHODS:
            raise ValueError(f"--methods names {name!r}, expected some of: {', '.join(METHODS)}")
    return [METHODS[name] for name in text.split(",")]
