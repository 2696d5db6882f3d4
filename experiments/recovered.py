"""All recovery problems on one page: our runs in one file, and the table of docs/results/codes.md.

    python -m experiments.recovered OUT/cells [OTHER/cells …] -o recovered.json        # gathers what was measured
    python -m experiments.recovered recovered.json                                     # the table, from the file

Cells are those of `experiments.recovery` and `experiments.intervals`; of two rows of the same problem, noise and seed
the later source's stays, so that a file can be brought up to date with new cells. TopK's Brier score stands beside ours
where `recovery-rivals.json` beside the file has one.
"""

import argparse
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.intervals import KEPT, summary
from experiments.recovery_cell import OURS
from experiments.recovery_problems import PROBLEMS

__all__ = ["RANGE", "gather", "main", "table"]

RANGE = (0.85, 0.95)  # of the true coefficients 90 % intervals are to hold, on average over seeds
_FIGURES = (
    *KEPT, "correlation", "explained_variance", "atoms_cosine", "precision", "recall", "ece_above_0.01",
    "coverage_true", "coverage_all",
)  # fmt: skip
_DRAWN = "drawn-"
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
    print("\n".join(table(rows, rivals)))
    drawn = [row for row in rows if row["name"].startswith(_DRAWN)]
    if drawn:
        print(json.dumps(summary(drawn), indent=1))


def gather(sources: Iterable[Path]) -> list[Row]:
    """One row for each problem, noise and seed, the last one found of each; problems of the page first."""
    found: dict[tuple[str, float, int], Row] = {}
    for source in sources:
        rows = json.loads(source.read_text()) if source.is_file() else map(_of_cell, source.glob(f"*-{OURS}-*.json"))
        found |= {(row["name"], row["noise"], row["seed"]): row for row in rows}
    if not found:
        raise SystemExit(f"no cells of {OURS} in {', '.join(map(str, sources))}; run experiments.recovery first")
    order = [*PROBLEMS]
    return [found[key] for key in sorted(found, key=lambda key: (_place(key[0], order), *key[1:]))]


def _of_cell(path: Path) -> Row:
    """a-n0.1-t4000-k5-hard-gaussian-3.json: the figures, rounded, and what they are of."""
    setting, seed = path.stem.split(f"-{OURS}-")
    name, noise = setting.split("-t")[0].rsplit("-n", 1)
    cell = json.loads(path.read_text())
    figures = {key: _rounded(cell[key]) for key in _FIGURES if key in cell}
    return {"name": name, "noise": float(noise), "seed": int(seed), **figures}


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
