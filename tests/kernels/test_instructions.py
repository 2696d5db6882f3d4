"""Every kernel of a fused step compiles for a Hopper GPU, on any machine: the interpreter accepts more than that."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

triton = pytest.importorskip("triton", reason="kernels need Triton")

ROOT = Path(__file__).parents[2]
KERNELS = {
    "_gather", "_forward", "_input_gradient", "_descend", "_decoding_error",
    "score", "score_resident", "redraw", "head_slopes", "_fista",
}  # fmt: skip


def compiled(*options, **environment):
    """Of the library in this folder, and of no warning: in a process where kernels are not interpreted."""
    clean = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-W", "error", "-m", "benchmarks.instructions", *map(str, options)]
    return subprocess.run(command, cwd=ROOT, env=clean | environment, capture_output=True, text=True, timeout=280)


@pytest.mark.slow
def test_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """Without a warning, too, of what Triton is going to choose otherwise."""
    mine = tmp_path / "mine.json"
    there = {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_DEFAULT_FP_FUSION": "0"}
    first = compiled("-o", mine, **there)
    assert first.returncode == 0, first.stderr
    found = json.loads(mine.read_text())
    assert found["triton"] == triton.__version__
    assert set(found["kernels"]) == KERNELS

    del found["kernels"]["_gather"][0]
    mine.write_text(json.dumps(found))
    second = compiled("--against", mine, **there)
    assert (second.returncode, second.stdout.splitlines()[-1]) == (1, "other instructions: _gather")


def test_fingerprints_of_another_compiler_are_not_compared(tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"triton": "0.0.0", "kernels": {}}))
    ended = compiled("--against", other)
    assert ended.returncode == 2
    assert "0.0.0" in ended.stderr
