"""The frontier recipe: one tiny cell end to end, kept and not computed again; tables and figures of what is there."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.frontier import main
from experiments.frontier_cell import Cell, complete
from experiments.frontier_report import write_report


@pytest.mark.parametrize("method", ["hard-gaussian", "topk"])
def test_a_cell_is_measured_once(method: str, tmp_path: Path) -> None:
    cell = Cell("photographs", 32, method, 4, 0, steps=5, batch=64, encoder_steps=2, n_train=600, n_valid=100)
    result = complete(cell, tmp_path, "cpu", solver_patches=20)
    assert result["rivals"]["patches"] == 20
    assert result["rivals"]["fista_active"] <= result["rivals"]["active"]
    assert (result["uncorrected"] is not None) == (method == "hard-gaussian")
    (path,) = tmp_path.glob("*.json")
    path.write_text(json.dumps({"kept": True}))
    assert complete(cell, tmp_path, "cpu") == {"kept": True}


def test_cells_that_differ_have_other_names() -> None:
    base = Cell("photographs", 32, "hard-gaussian", 4, 0, steps=5, batch=64)
    changes = [{"asked": 0.99}, {"rounds": 3}, {"encoder_steps": 2}, {"n_train": 10}, {"n_valid": 10}, {"steps": 6}]
    changes += [{"positive": True}, {"refits": 0}]
    assert len({replace(base, **change).name for change in [{}, *changes]}) == len(changes) + 1  # type: ignore[arg-type]


def fabricated(method: str, active: float, seed: int, rivals: bool, **changes: int) -> dict:
    cell = Cell("olshausen", 256, method, active, seed, 10, 8, **changes)
    scores = dict.fromkeys(["own", "omp_tolerance", "omp_gain", "omp_fixed", "fista", "fista_refit"], 0.5)
    return {
        "cell": {**cell.__dict__}, "seconds": 1.0, "explained_variance": 0.5 + 0.01 * seed, "active": 1.01 * active,
        "dead": 0.0, "worst_patch": 1.0, "uncorrected": 0.6 if method == "hard-gaussian" else None,
        "rivals": scores if rivals else {},
    }  # fmt: skip


def test_cells_of_other_settings_are_rows_of_their_own(tmp_path: Path) -> None:
    """Not seeds of one: with and without refits, non-negative, of another method, on fewer patches."""
    kinds = [("hard-gaussian", {}), ("hard-gaussian", {"refits": 0}), ("hard-gaussian", {"n_train": 10})]
    kinds += [("hard-gaussian", {"positive": True}), ("topk", {}), ("topk", {"positive": True}), ("gaussian", {})]
    (tmp_path / "cells").mkdir()
    for number, (method, changes) in enumerate(kinds):
        cell = fabricated(method, 6, 0, method == "hard-gaussian", **changes)
        (tmp_path / "cells" / f"{number}.json").write_text(json.dumps(cell))
    content = write_report(tmp_path)[0].read_text()
    rows = [line for line in content.splitlines() if "10×8" in line]
    assert len(rows) == len(kinds)
    assert all(line.endswith("| 1 |") for line in rows)
    assert {line.split(" | ")[0] for line in rows} == {
        "| softspike", "| hard-gaussian, positive", "| TopK", "| topk, positive", "| gaussian"
    }  # fmt: skip
    assert "Asked and measured" not in content


def test_report_of_finished_cells(tmp_path: Path) -> None:
    cells = [fabricated("hard-gaussian", k, seed, True) for k in (6, 12) for seed in (0, 1)]
    cells += [fabricated("topk", k, 0, False) for k in (6, 12)] + [fabricated("hard-gaussian", 25.6, 0, False)]
    (tmp_path / "cells").mkdir()
    for number, cell in enumerate(cells):
        (tmp_path / "cells" / f"{number}.json").write_text(json.dumps(cell))
    text, figure = write_report(tmp_path)
    content = text.read_text()
    assert "| softspike | 10×8 | 5 + 20 | own | 6 | 6.06 | 0.5050 ± 0.0050 | 0.6000 | 0.5050 | 0.5050 |" in content
    assert "| 10 | 10.100 | +1.0 % |" in content
    assert figure.stat().st_size < 200_000
    # The merged file alone is enough to draw again.
    before = text.read_text()
    for path in (tmp_path / "cells").glob("*.json"):
        path.unlink()
    main(["--plot", "--out", str(tmp_path)])
    assert text.read_text() == before
