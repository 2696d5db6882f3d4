"""softspike bench: problems, rounds, tables."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from softspike.bench.entry import GAP, Entry, quality_of
from softspike.bench.ours import encoders, solvers
from softspike.bench.peers import PEERS, left_out, peers
from softspike.bench.place import Targets, targets_of
from softspike.bench.problem import Problem, make_problem
from softspike.bench.table import Row, markdown, row_of, verdicts
from softspike.bench.timing import rounds, signals_within
from softspike.report.progress import stages_shown
from softspike.run import write_atomically

__all__ = ["Size", "bench_job"]


class Size(NamedTuple):
    components: Sequence[int] = (256, 1024, 4096)
    signals: int = 10_000
    active: int = 26  # a tenth of 256
    rounds: int = 5
    seconds: float = 3.0  # that one turn of a slow method may take
    training_steps: int = 1000
    learning: int = 10_000
    peers: Sequence[str] | None = None  # of `PEERS`; None is all of them

    @classmethod
    def quick(cls) -> "Size":
        return cls((64,), 1000, 8, 3, 0.2, 100, 1000)  # enough signals for the compiled solvers


def bench_job(out: Path | None, size: Size) -> list[Row]:
    """Measure, print the tables, and write OUT.md and OUT.json, which grow with every number of components."""
    if size.rounds < 2:
        raise ValueError(f"{size.rounds} rounds were asked for, expected at least 2 rounds: one says nothing")
    if min(size.components, default=0) <= size.active or size.signals < 1:
        raise ValueError(
            f"{size.signals} signals and components {list(size.components)} were asked for, expected at least 1 signal "
            f"and more than {size.active} components, which is how many are active"
        )
    if not 0 < size.seconds < float("inf") or size.training_steps < 1:
        raise ValueError(
            f"{size.seconds:g} seconds a turn and {size.training_steps} training steps were asked for, expected more "
            "than 0 of each"
        )
    for name in size.peers or ():
        if name not in PEERS:
            raise ValueError(f"{name!r} was asked for, expected peers among {', '.join(PEERS)}")
    targets = None if out is None else targets_of(out)
    print(_head(size))
    rows: list[Row] = []
    for components in dict.fromkeys(size.components):
        print(f"\n{components:,} atoms: learning a dictionary …", flush=True)
        problem = make_problem(components, size.signals, size.active, size.learning)
        measured = _measure(problem, size)
        rows += measured
        print(markdown(measured), flush=True)
        if targets is not None:  # after every size, so that nothing is lost where the rest is not waited for
            _write(targets, rows, size)
    print("\n".join(verdicts(rows, GAP) + _absent(size)))
    return rows


def _write(targets: Targets, rows: Sequence[Row], size: Size) -> None:
    content = {"machine": machine(), "size": size._asdict(), "rows": [row.json() for row in rows]}
    write_atomically(targets.content, json.dumps(content, indent=1).encode())
    write_atomically(targets.page, _page(rows, size).encode())


def _measure(problem: Problem, size: Size) -> list[Row]:
    print(f"{problem.n_components:,} atoms: training encoders …", flush=True)
    entries = [*solvers(problem), *peers(problem, size.peers), *encoders(problem, size.training_steps)]
    with stages_shown(len(entries) * (size.rounds + 1)) as told:
        counts = []
        for entry in entries:
            told(f"trying {entry.package} {entry.name}")
            counts.append(signals_within(entry, len(problem.x), size.seconds))
        codes = rounds(entries, counts, size.rounds, told)
    measured = [
        row_of(problem.n_components, entry, count, quality_of(entry, problem, found))
        for entry, count, found in zip(entries, counts, codes, strict=True)
    ]
    return [_nothing(problem), *measured]


def _nothing(problem: Problem) -> Row:
    """The baseline z = 0 on the same dictionary: what it explains, and its gap."""
    zeros = np.zeros((len(problem.x), problem.n_components), np.float32)
    entry = Entry("lasso", "", "z = 0", lambda n: zeros[:n], "the baseline")
    return row_of(problem.n_components, entry, len(zeros), quality_of(entry, problem, zeros))


def machine() -> dict[str, Any]:
    """What the figures depend on, and nothing that names the machine."""
    return {
        "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpu": torch.cuda.is_available(),
        "architecture": platform.machine(), "processor": _processor(),
        "python": platform.python_version(), "torch": torch.__version__,
    }  # fmt: skip


def _processor() -> str:
    """Name, family and model, which say how wide its units are; else what the system calls it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    known = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    parts = [known.get("model name", ""), known.get("cpu family", ""), known.get("model", "")]
    return ", ".join(part for part in parts if part) or platform.processor()


def _absent(size: Size) -> list[str]:
    absent = left_out(size.peers)
    return [f"Left out: {name}, {reason} (pip install 'softspike[bench]')." for name, reason in absent.items()]


def _head(size: Size) -> str:
    """What the columns are."""
    here = machine()
    return (
        f"{size.rounds} rounds in which all methods take turns; {here['cores']} cores, "
        f"{'with a' if here['gpu'] else 'no'} GPU. Times are over those of our lasso, for OMP over our OMP, as medians "
        "of the rounds' ratios with their range; CPU is the same of processor time, all threads together. Gap: 99 % of "
        "signals are below, over ½‖x‖²."
    )


def _page(rows: Sequence[Row], size: Size) -> str:
    said = "\n".join(f"- {line}" for line in verdicts(rows, GAP) + _absent(size))
    return "\n\n".join([_head(size), markdown(rows).strip(), said]) + "\n"
