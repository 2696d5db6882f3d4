"""Faults put into the library by hand, each of which the tests must notice: python -m drills.mutants [word …]

Every fault is applied to a copy of the package in a temporary folder, and the tests that should notice it are run
there, the smallest files first. For each fault the test that caught it is named; where none does, a test is
missing.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from drills.faults import MUTANTS, Mutant

__all__ = ["tried"]

ROOT = Path(__file__).parents[1]


def tried(mutant: Mutant) -> str | None:
    """The test that caught the fault, or None."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in ("src", "tests", "drills", "benchmarks", "experiments"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "CONTRIBUTING.md", "README.md"):
            shutil.copy(ROOT / part, copy / part)
        path = copy / "src/softspike" / mutant.file
        content = path.read_text(encoding="utf-8")
        if content.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.name}: {mutant.file} does not hold {mutant.old!r} exactly once")
        path.write_text(content.replace(mutant.old, mutant.new), encoding="utf-8")
        return next((caught for test in mutant.tests.split() if (caught := _caught(copy, test))), None)


def _caught(copy: Path, test: str) -> str | None:
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", f"tests/{test}"]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=environment)
    if done.returncode == 0:
        return None
    named = re.search(r"^(?:FAILED|ERROR) tests/(.+?)(?: - |$)", done.stdout, re.MULTILINE)
    if named is None:
        raise SystemExit(f"{test} did not run: {done.stdout[-500:]}{done.stderr[-500:]}")
    return named[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="of the names of faults to try (default: all)")
    words, survived, begun = parser.parse_args().words, 0, time.monotonic()
    chosen = [mutant for mutant in MUTANTS if all(word in mutant.name for word in words)]
    for mutant in chosen:
        caught = tried(mutant)
        survived += caught is None
        print(f"{mutant.name}: {f'caught by {caught}' if caught else 'SURVIVED'}", flush=True)
    print(f"{len(chosen)} faults, {survived} survived ({time.monotonic() - begun:.0f} s)")
    raise SystemExit(1 if survived else 0)


if __name__ == "__main__":
    main()
