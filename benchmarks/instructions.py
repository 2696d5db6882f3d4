"""The instructions that the fused kernels become on an H100 or H200, compiled without one.

    python -m benchmarks.instructions [-o OUT.json] [--against OTHER.json]

The interpreter that tests kernels on a CPU accepts what the compiler may refuse, and says nothing of speed. So every
kernel of a step of the paper's linear models is compiled for such a GPU, and its PTX, without names of files and lines,
becomes a fingerprint. Where two versions of this library have the same fingerprints by one version of Triton, times of
the one are times of the other. Kernels are compiled, not launched: nothing here computes anything.
"""

import argparse
import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)  # kernels are compiled, or interpreted, as they are imported

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from softspike.data import TensorRows
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf
from softspike.train.fused.engine import prepare

VARIATIONAL = [name for name in PUBLISHED if name != "fista"]
RUNS = [
    (["thresholded-laplacian"], 20, 1, {}),
    (["thresholded-laplacian"], 100, 3, {}),
    (["thresholded-laplacian-gamma"], 20, 9, {}),
    (VARIATIONAL, 20, 3, {}),
    (["thresholded-laplacian"], 20, 1, {"n_components": 4096}),
    (["fista"], 1, 3, {}),
]  # methods, J, seeds, sizes: other tiles are chosen for other numbers of replicas


class Hopper:
    """What Triton asks of the GPU it compiles for."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def without_places(ptx: str) -> str:
    """The instructions alone: no files, lines, comments, or tables for debuggers, which come last."""
    code = re.sub(r"//.*", "", ptx.split("\t.section")[0])
    return re.sub(r"^\s*\.(loc|file)\b.*$", "", code, flags=re.MULTILINE)


def compile_only() -> dict[str, set[str]]:
    """From here on launches compile for Hopper, and launch nothing; the fingerprints by kernel, as they come."""
    found: dict[str, set[str]] = {}
    run = JITFunction.run

    def compile_it(self: JITFunction, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        code = without_places(kernel.asm["ptx"])
        found.setdefault(self.fn.__name__, set()).add(hashlib.sha256(code.encode()).hexdigest()[:16])
        return kernel

    driver.set_active(Hopper())
    JITFunction.run = compile_it
    return found


def one_epoch(methods: list[str], n_samples: int, n_seeds: int, sizes: dict[str, int]) -> None:
    """Two steps of so many replicas on random data, with the precision of a GPU."""
    study = Study(n_steps=2, **sizes)  # type: ignore[arg-type]
    each = [(name, seed) for name in methods for seed in range(n_seeds)]
    built = [build_published(PUBLISHED[name], study, SCRIPTS, BestOf(n_samples), seed) for name, seed in each]
    rows = TensorRows(torch.randn(2 * study.batch_size, study.n_features))
    coders, seeds = [b.coder for b in built], [seed for _, seed in each]
    prepare(coders, rows, built[0].recipe, seeds, "cpu", precision="tf32").run_epoch()


def fingerprints() -> dict[str, Any]:
    found = compile_only()
    for run in RUNS:
        one_epoch(*run)
    return {"triton": triton.__version__, "kernels": {name: sorted(found[name]) for name in sorted(found)}}


def differences(mine: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The kernels whose instructions differ, or that only one has."""
    return [name for name in sorted({*mine, *other}) if mine.get(name) != other.get(name)]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--out", type=Path, help="write fingerprints to this file")
    parser.add_argument("--against", type=Path, help="a file that another version of this library wrote")
    asked = parser.parse_args()
    other = json.loads(asked.against.read_text()) if asked.against else None
    if other and other["triton"] != triton.__version__:
        parser.error(
            f"{asked.against} is by Triton {other['triton']}, this is {triton.__version__}: make it anew with this"
        )
    found = fingerprints()
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")
    for name, codes in found["kernels"].items():
        print(f"{name:16} {len(codes):3} {' '.join(codes[:4])}{' …' if len(codes) > 4 else ''}")
    if other is None:
        return 0
    changed = differences(found["kernels"], other["kernels"])
    print(f"other instructions: {', '.join(changed)}" if changed else "the same instructions in every kernel")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
