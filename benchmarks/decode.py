"""Decoding CSR codes: each way over the dense product, by activity: python -m benchmarks.decode [-o results.json]

Processor time of all threads together, over rounds in which all ways take turns; 1,000 rows of 256 features. "chosen"
is `softspike.inference.decode_csr`, by which `inverse_transform` decodes: the way that it found to be the fastest, a
chunk at a time. A figure is a round's time of the dense product over that of the way: the median, the least, the most.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy import sparse

from softspike.bench.job import machine
from softspike.inference.decoding import WAYS, decode_csr

ROWS, FEATURES = 1000, 256
TIMED = {**WAYS, "chosen": decode_csr}


def times_dense(n_components: int, activity: float, repeats: int) -> dict[str, Any]:
    """How many times faster than the dense product each way is."""
    codes = sparse.random(ROWS, n_components, activity, "csr", rng=np.random.default_rng(0)).astype(np.float32)
    atoms = np.random.default_rng(1).standard_normal((n_components, FEATURES), dtype=np.float32)
    rounds = [{name: _seconds(way, codes, atoms) for name, way in TIMED.items()} for _ in range(repeats + 1)][1:]
    found: dict[str, Any] = {"components": n_components, "activity": activity}
    for name in TIMED:
        times = [each["dense"] / each[name] for each in rounds]
        found[name] = {"times": median(times), "least": min(times), "most": max(times)}
    return found


def _seconds(way: Any, codes: sparse.csr_matrix, atoms: np.ndarray) -> float:
    begun = time.process_time()
    way(codes, atoms)
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = [name for name in TIMED if name != "dense"]
    print(f"| components | activity | {' | '.join(names)} |\n| ---: | ---: |" + " ---: |" * len(names))
    rows = []
    for n_components in (256, 1024, 4096):
        for activity in (0.01, 0.03, 0.1, 0.3):
            rows.append(row := times_dense(n_components, activity, options.repeats))
            cells = [f"{row[name]['times']:.1f} ({row[name]['least']:.1f}–{row[name]['most']:.1f})" for name in names]
            print(f"| {n_components:,} | {activity:.0%} | {' | '.join(cells)} |", flush=True)
            if options.output is not None:
                options.output.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
