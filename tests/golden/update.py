"""Write runs.json anew and print what moved: python tests/golden/update.py. When this may be done: see README.md."""

import json
import platform
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "src")]

import torch  # noqa: E402
from golden.figures import CASES, FILE, figures_of, stored, tolerance  # noqa: E402


def main() -> None:
    before = stored() if FILE.exists() else {}
    figures = {case: figures_of(case) for case in CASES}
    for case, found in figures.items():
        for name, value in found.items():
            old = before.get(case, {}).get(name)
            if old is None or abs(value - old) > tolerance(case, name) * abs(old):
                print(f"{case}: {name} was {old}, is {value}")
    made = {"torch": torch.__version__, "python": platform.python_version(), "machine": platform.machine()}
    heading = "Stored figures of small runs; README.md says how and when they may be updated."
    FILE.write_text(json.dumps({"about": heading, "made with": made, "figures": figures}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
