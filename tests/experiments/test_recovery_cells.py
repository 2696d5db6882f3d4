"""The recovery recipe: cells measured once, in processes of their own, and their summary."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.recovery import main


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_are_measured_once_and_summarised(workers: int, tmp_path: Path) -> None:
    options = ["a", "--seeds", "2", "--steps", "5", "--methods", "hard-gaussian", "topk", "--device", "cpu"]
    command = [*options, "--workers", str(workers), "--out", str(tmp_path)]
    main(command)
    cells = sorted(path.name for path in (tmp_path / "cells").iterdir())
    assert cells == [f"a-n0-t5-k5-{method}-{seed}.json" for method in ("hard-gaussian", "topk") for seed in (0, 1)]
    (page,) = tmp_path.glob("*.json")
    ours, topk = (json.loads(page.read_text())["methods"][method] for method in ("hard-gaussian", "topk"))
    assert 0 <= ours["coverage_active"][0] <= 1
    assert "coverage_active" not in topk
    assert {"seconds_data", "seconds", "seconds_measure"} <= ours.keys()
    assert ours["ece"][0] == pytest.approx(sum(ours["ece_by_seed"]) / 2)
    for path in (tmp_path / "cells").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "ece": 0.5}))
    main([*command, "--plot"])
    assert json.loads(page.read_text())["methods"]["topk"]["ece"] == [0.5, 0.0]
    assert page.with_suffix(".png").stat().st_size < 200_000
