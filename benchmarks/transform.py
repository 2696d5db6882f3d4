"""`transform` on several threads over one: python -m benchmarks.transform [-o results.json] [--threads 2] [--wait 20]

Codes of random data by models after a few steps, which cost what those of trained ones cost. Both numbers of threads
take turns, another one first in each round; a figure is a round's time on one thread over that on several: the median,
the least and the most.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from benchmarks.calm import wait_for_calm
from softspike import SparseCoder
from softspike.bench.job import machine

METHODS = ["hard-gaussian", "thresholded-laplacian", "fista"]


def measure(method: str, n_rows: int, n_components: int, threads: int, repeats: int, patience: float) -> dict[str, Any]:
    """Seconds of `transform` by the number of threads, and how many times faster several are."""
    x = np.random.default_rng(0).standard_normal((n_rows, 256), dtype=np.float32)
    coder = SparseCoder(n_components, method=method, max_steps=20, random_state=0, verbose=False).fit(x[:2000])
    seconds: dict[int, list[float]] = {1: [], threads: []}
    for turn in range(-1, repeats):  # the first compiles
        wait_for_calm(patience)
        for n in sorted(seconds, reverse=bool(turn % 2)):
            torch.set_num_threads(n)
            begun = time.perf_counter()
            coder.transform(x)
            seconds[n].append(time.perf_counter() - begun)
    seconds = {n: each[1:] for n, each in seconds.items()}
    times = [one / several for one, several in zip(seconds[1], seconds[threads], strict=True)]
    sizes = {"method": method, "rows": n_rows, "components": n_components, "threads": threads}
    return {**sizes, "times": median(times), "least": min(times), "most": max(times), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--components", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for a calm machine before a round")
    parser.add_argument("methods", nargs="*", default=METHODS)
    options = parser.parse_args()
    if options.threads < 2:
        parser.error(f"--threads {options.threads}: needs 2 or more, to compare with one")
    print(f"| method | rows | {options.threads} threads over one | range |\n| --- | ---: | ---: | ---: |")
    rows = []
    for method in options.methods:
        row = measure(
            method, options.rows, options.components, options.threads, options.repeats, options.wait
        )  # fmt: skip
        rows.append(row)
        print(f"| {method} | {row['rows']:,} | {row['times']:.2f} | {row['least']:.2f}–{row['most']:.2f} |", flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
