"""All recovery problems on one page: every run of ours and of the rivals in two files, and the table of them.

    python -m experiments.recovered recovered.json OUT/cells [OTHER/cells …] -o recovered.json        # adds new cells
    python -m experiments.recovered recovered.json                                     # the table, from the file

Cells are those of `experiments.recovery` and `experiments.intervals` at their own settings; of two of the same problem,
noise and seed the later source's stays. Means of the rivals' cells go into `recovery-rivals.json` beside the file.
"""

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.intervals import KEPT, summary
from experiments.recovery_cell import OURS, Cell
from experiments.recovery_problems import PROBLEMS
from experiments.recovery_summary import summarise

__all__ = ["RANGE", "gather", "gather_rivals", "main", "table"]

RANGE = (0.85, 0.95)  # of the true coefficients 90 % intervals are to hold, on average over seeds
_FIGURES = (
    *KEPT, "correlation", "explained_variance", "atoms_cosine", "precision", "recall", "ece_above_0.01",
    "coverage_true", "coverage_all",
)  # fmt: skip
_DRAWN, _DRAWN_STEPS = "drawn-", 3000
_RIVALS = ("topk", "batchtopk", "jumprelu", "fista")
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="experiments.recovered", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path, nargs="+", help="folders of cells, or files of this command")
    parser.add_argument("-o", "--out", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    rows = gather(options.sources)
    beside = (options.out or options.sources[0]).parent / "recovery-rivals.json"
    rivals = json.loads(beside.read_text()) if beside.exists() else {}
    if options.out:
        options.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
        for setting, found in gather_rivals(options.sources).items():
            rivals.setdefault(setting, {}).update(found)
        beside.write_text(json.dumps(rivals, indent=1))
    print("\n".join(table(rows, rivals)))
    drawn = [row for row in rows if row["name"].startswith(_DRAWN)]
    if drawn:
        print(json.dumps(summary(drawn), indent=1))


def gather(sources: Iterable[Path]) -> list[Row]:
    """One row for each problem, noise and seed, the last one found of each; problems of the page first."""
    found: dict[tuple[str, float, int], Row] = {}
    for source in sources:
        rows = json.loads(source.read_text()) if source.is_file() else [_row(*cell) for cell in _cells(source, OURS)]
        found |= {(row["name"], row["noise"], row["seed"]): row for row in rows}
    if not found:
        raise SystemExit(
            f"no cells of {OURS} at the problems' own settings in {', '.join(map(str, sources))}; run "
            "experiments.recovery first, without --steps, --encoder-steps, --refits and --asked"
        )
    order = [*PROBLEMS]
    return [found[key] for key in sorted(found, key=lambda key: (_place(key[0], order), *key[1:]))]


def gather_rivals(sources: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """By problem and noise, as in "a-n0.1", and method: means over seeds, some figures by seed, the reliability."""
    folders = [source for source in sources if source.is_dir()]
    found: dict[str, dict[str, Any]] = {}
    for method in _RIVALS:
        groups: dict[str, list[Row]] = {}
        for cell, figures in (one for folder in folders for one in _cells(folder, method)):
            groups.setdefault(f"{cell.problem}-n{cell.noise:g}", []).append(figures)
        for setting, cells in groups.items():
            said = summarise({method: cells})[method]
            means = {key: _rounded(value[0]) if isinstance(value, list) and key in cells[0] else value
                     for key, value in said.items()}  # fmt: skip
            found.setdefault(setting, {})[method] = {**means, "seeds": len(cells)}
    return found


def _cells(folder: Path, method: str) -> Iterable[tuple[Cell, Row]]:
    """a-n0.1-t4000-k5-topk-3.json and the like, with what they hold; those of other settings are left out."""
    for path in sorted(folder.glob(f"*-{method}-*.json")):
        setting, seed = path.stem.rsplit(f"-{method}-", 1)
        name, noise = setting.split("-t")[0].rsplit("-n", 1)
        steps = PROBLEMS[name].steps if name in PROBLEMS else _DRAWN_STEPS
        cell = Cell(name, method, int(seed), float(noise), steps)
        if cell.name == path.stem:
            yield cell, json.loads(path.read_text())


def _row(cell: Cell, figures: Row) -> Row:
    """What is kept of a cell, rounded, and what it is of."""
    kept = {key: _rounded(figures[key]) for key in _FIGURES if key in figures}
    return {"name": cell.problem, "noise": cell.noise, "seed": cell.seed, **kept}


def _rounded(value: Any) -> Any:
    """NaN, of what there is none of, as null: JSON knows no NaN."""
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 5)
    return value


def _place(name: str, order: list[str]) -> tuple[int, int]:
    return (len(order), int(name.removeprefix(_DRAWN))) if name.startswith(_DRAWN) else (order.index(name), 0)


def table(rows: Iterable[Row], rivals: dict[str, Any]) -> list[str]:
    """Lines of Markdown, one for each problem and noise: means over seeds, with the range of some."""
    lines = [
        "| problem | seeds | calibration error (range) | Brier, ours / TopK | coverage of active entries (range) "
        "| … of found atoms | … of true entries | correlation | F1 |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        if not row["name"].startswith(_DRAWN):
            groups.setdefault((row["name"], row["noise"]), []).append(row)
    return [*lines, *(_line(*key, group, rivals) for key, group in groups.items())]


def _line(name: str, noise: float, rows: list[Row], rivals: dict[str, Any]) -> str:
    values = {key: np.array([row[key] for row in rows], dtype=float) for key in _FIGURES if key in rows[0]}
    mean = {key: value.mean() for key, value in values.items()}
    error, covered = (
        f"{mean[key]:.3f} ({values[key].min():.3f}–{values[key].max():.3f})" for key in ("ece", "coverage_active")
    )
    outside = "" if RANGE[0] <= mean["coverage_active"] <= RANGE[1] else " **outside**"
    topk = rivals.get(f"{name}-n{noise:g}", {}).get("topk", {}).get("brier")
    cells = [
        name + (f" with noise {noise:g}" if noise else ""), f"{len(rows)}", error,
        f"{mean['brier']:.4f} / " + ("–" if topk is None else f"{topk:.4f}"), covered + outside,
        *(f"{mean[key]:.3f}" for key in ("coverage_active_found", "coverage_true", "correlation", "f1")),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
