"""No measure takes more than 2 GB at the size of the paper's study, 16,000 codes of 256 components."""

import subprocess
import sys
from pathlib import Path

# One after the other in a process of their own, so that its peak bounds that of each; torch itself is in it.
ALL = """
import resource, torch
from benchmarks.metrics import MEASURES, sparse
torch.manual_seed(0)
for name, ((n, d), measure) in MEASURES.items():
    if n > 16_000:
        continue
    rows = 200 if name.startswith("bound") else n  # batches of it take the same memory, however many
    measure(torch.randn(rows, 256), sparse(rows, d))
    print(name, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, flush=True)
"""


def test_two_gigabytes_are_enough():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", ALL], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    peaks = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in done.stdout.splitlines()}
    assert len(peaks) == 11
    assert max(peaks.values()) < 2, peaks
