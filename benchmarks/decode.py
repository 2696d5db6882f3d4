"""Decoding CSR codes: each way over the dense product, by activity: python -m benchmarks.decode [--threads 2]

Processor time, medians of rounds in which all ways take turns; 1,000 rows of 256 features.
"""

import argparse
import time
from statistics import median

import numpy as np
import torch
from scipy import sparse

from softspike.decoding import WAYS

ROWS, FEATURES = 1000, 256


def times_dense(n_components: int, activity: float, repeats: int) -> dict[str, float]:
    """How many times faster than the dense product each way is."""
    codes = sparse.random(ROWS, n_components, activity, "csr", rng=np.random.default_rng(0)).astype(np.float32)
    atoms = np.random.default_rng(1).standard_normal((n_components, FEATURES), dtype=np.float32)
    taken: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(repeats + 1):
        for name, way in WAYS.items():
            begun = time.process_time()
            way(codes, atoms)
            taken[name].append(time.process_time() - begun)
    return {name: median(taken["dense"][1:]) / median(each[1:]) for name, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{'components':>10} {'activity':>9} " + " ".join(f"{name:>9}" for name in WAYS))
    for n_components in (256, 1024, 4096):
        for activity in (0.01, 0.03, 0.1, 0.3):
            found = times_dense(n_components, activity, options.repeats)
            print(
                f"{n_components:10d} {activity:9.2f} " + " ".join(f"{value:9.2f}" for value in found.values()),
                flush=True,
            )


if __name__ == "__main__":
    main()
