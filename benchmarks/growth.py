"""A picture of how a fused step grows: python -m benchmarks.growth docs/results/speed-gpu.json -o speed-growth.png

From what `python -m benchmarks.fused --only growth` wrote: time and peak memory of a step against the samples J, the
components d, the batch B and the replicas, with the floor under each time.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Row = Mapping[str, Any]


class Curve(NamedTuple):
    rows: str  # the name of its list in the file
    label: str
    at: Callable[[Row], int]


CURVES = [
    Curve("growth_J", "samples J", lambda row: int(row["J"][0])),
    Curve("growth_d", "components d", lambda row: int(row["n_components"])),
    Curve("growth_B", "batch B", lambda row: int(row["batch_size"])),
    Curve("growth_R", "replicas", lambda row: int(row["replicas"])),
]


def picture(results: Mapping[str, Sequence[Row]], device: str) -> Figure:
    """Two rows of panels, time above and memory below, one column for each curve."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    panels = figure.subplots(2, len(CURVES), sharex="col", sharey="row")
    for curve, above, below in zip(CURVES, panels[0], panels[1], strict=True):
        rows = results[curve.rows]
        at = [curve.at(row) for row in rows]
        above.plot(at, [row["us"] for row in rows], "o-", label="measured")
        above.plot(at, [row["floor_us"] for row in rows], "--", color="grey", label="floor: bytes and arithmetic")
        below.plot(at, [row["GiB"] for row in rows], "o-", color="C1")
        below.set_xlabel(curve.label)
        for panel in (above, below):
            _as_powers(panel)
    panels[0][0].set_ylabel("µs per step of all replicas")
    panels[1][0].set_ylabel("GiB at the peak")
    panels[0][0].legend(frameon=False)
    figure.suptitle(f"A training step on one {device}: J = 20, d = 256, B = 100, one model, but for what varies")
    return figure


def _as_powers(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.grid(alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("speed-growth.png"))
    options = parser.parse_args()
    results = json.loads(options.results.read_text())
    if missing := [curve.rows for curve in CURVES if curve.rows not in results]:
        parser.error(f"{options.results} lacks {', '.join(missing)}: let benchmarks.fused --only growth write them")
    picture(results, results["device"]).savefig(options.output, dpi=110)


if __name__ == "__main__":
    main()
