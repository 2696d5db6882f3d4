"""All recovery problems in one file and one table, and the page of results that shows it."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.recovered import gather, gather_rivals, main, table

RESULTS = Path(__file__).parents[2] / "docs/results"
OURS = "hard-gaussian"


def cell(folder: Path, name: str, coverage: float, **more: Any) -> None:
    """As `experiments.recovery` leaves it."""
    figures = dict.fromkeys(("ece", "brier", "correlation", "f1", "atoms_share", "active"), 0.123456789)
    covered = dict.fromkeys(("coverage_active", "coverage_active_found", "coverage_true"), coverage)
    bins = [[0.1, None], [0.2, None], [7, 0]]
    whole = {"device": "cpu", "dead_training": 0, **figures, **covered, "reliability": bins, **more}
    (folder / f"{name}.json").write_text(json.dumps(whole))


def test_cells_become_rows_in_the_order_of_the_problems(tmp_path: Path) -> None:
    """Those of other steps or refits, and of other methods, are no runs of the problem as it is."""
    for name in (f"b-n0-t4000-k5-{OURS}-0", f"a-n0.1-t4000-k5-{OURS}-3", f"a-n0-t4000-k5-{OURS}-10"):
        cell(tmp_path, name, 0.9)
    for name in (f"drawn-20-n0.05-t3000-k5-{OURS}-20", f"drawn-3-n0-t3000-k5-{OURS}-3", "a-n0-t4000-k5-topk-0"):
        cell(tmp_path, name, 0.8, f1=float("nan"))
    for name in (f"a-n0-t4000-k5-f0-{OURS}-10", f"a-n0-t5-k5-{OURS}-10", f"a-n0-t4000-k9-{OURS}-1"):
        cell(tmp_path, name, 0.1)
    rows = gather([tmp_path])
    named = [(row["name"], row["noise"], row["seed"]) for row in rows]
    assert named == [("a", 0, 10), ("a", 0.1, 3), ("b", 0, 0), ("drawn-3", 0, 3), ("drawn-20", 0.05, 20)]
    assert (rows[0]["ece"], rows[0]["coverage_active"]) == (0.12346, 0.9)
    assert rows[-1]["f1"] is None
    assert "device" not in rows[0]


def test_later_sources_replace_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, then cells that were measured again, into the same file; what the table says of them."""
    file, cells = tmp_path / "recovered.json", tmp_path / "cells"
    cells.mkdir()
    for seed, coverage in enumerate((0.8, 0.9)):
        cell(cells, f"a-n0-t4000-k5-{OURS}-{seed}", coverage)
    main([str(cells), "-o", str(file)])
    assert "0.1235 / – | 0.850 (0.800–0.900) |" in capsys.readouterr().out
    cell(cells, f"a-n0-t4000-k5-{OURS}-1", 0.7, brier=0.05)
    for seed, brier in enumerate((0.1, 0.3)):
        cell(cells, f"a-n0-t4000-k5-topk-{seed}", 0.5, brier=brier)
    main([str(file), str(cells), "-o", str(file)])
    printed = capsys.readouterr().out
    assert "0.750 (0.700–0.800) **outside** |" in printed
    assert "0.0867 / 0.2000" in printed
    assert [row["coverage_active"] for row in json.loads(file.read_text())] == [0.8, 0.7]
    (topk,) = gather_rivals([cells])["a-n0"].values()
    assert (topk["brier"], topk["seeds"], topk["reliability"]["count"]) == (0.2, 2, [14])
    assert json.loads((tmp_path / "recovery-rivals.json").read_text()) == {"a-n0": {"topk": topk}}


def test_no_cells_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"no cells of hard-gaussian at .* settings in .*; run experiments.rec"):
        gather([tmp_path])


def test_the_page_shows_what_the_file_holds() -> None:
    rows = gather([RESULTS / "recovered.json"])
    rivals = json.loads((RESULTS / "recovery-rivals.json").read_text())
    page = (RESULTS / "codes.md").read_text(encoding="utf-8")
    for line in table(rows, rivals):
        assert line in page
