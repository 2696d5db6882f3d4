"""What the tables and sentences say, on figures made up for the purpose."""

from dataclasses import replace

import pytest
from made_rows import SCRIPTS, record, row, table1_row

from softspike.report.grid import Grid, markdown, print_grid
from softspike.reproduce.cell import BEST, METHODS, SINGLE_SWITCHES, VARIANTS, Cell
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import off_by, rows_of, short
from softspike.reproduce.setting import FULL, QUICK
from softspike.reproduce.side_by_side import side_by_side
from softspike.reproduce.store import Store
from softspike.reproduce.table1 import right_grid, switch_grid
from softspike.reproduce.verdict import verdicts
from softspike.run import RunError


def test_single_switches_stand_between_the_conventions_they_mix():
    figures = {"loss": {"total": 250.0, "norm": 1.0, "zero": 128.0}, "multi_information": {"published": 200.0}}
    figures |= {"prior_multi_information": 180.0, "best_sample": {"active": 20.0}}
    variants = [VARIANTS["scripts"], VARIANTS["equations"], SINGLE_SWITCHES["scripts-logit"]]
    rows = [row(Cell(METHODS["spike-and-slab"], BEST, 1, variant, 0), figures) for variant in variants]
    grid = switch_grid(rows[2:], rows[:2], FULL)
    assert [line[1] for line in grid.rows] == [variant.title for variant in variants]
    assert all(len(line) == len(grid.columns) for line in grid.rows)
    assert [line[5] for line in grid.rows] == ["250.0"] * 3
    assert [line[3:5] for line in grid.rows] == [["240,000", "1"]] * 3


VARIATIONAL = [(name, n) for name, n in TABLE1 if n is not None]


def test_a_perfect_reproduction_is_called_one():
    said = verdicts([table1_row(name, n) for name, n in VARIATIONAL] + [table1_row("fista", 1)])
    assert "in 14 of 14 rows. Multi-information is within 4 % in 14 of 14 rows." in said[0]
    assert said[1].startswith("Ranking by loss at J = 1: Thresholded Laplacian < Thresholded Laplacian + Gamma")
    assert all(sentence.endswith("that is the paper's.") for sentence in said[1:3])
    assert "loss 101.0 (paper: 101), 7.8 % of components active" in said[3]


@pytest.mark.parametrize(
    ("name", "loss_factor", "mi_factor", "loss_misses", "mi_misses"),
    [
        ("gaussian", 1.029, 0.961, False, False),
        ("gaussian", 0.96, 1.05, True, True),
        ("spike-and-slab", 1.05, 1.0, False, False),
        ("spike-and-slab", 1.07, 1.0, True, False),
    ],
)
def test_misses_are_named(name, loss_factor, mi_factor, loss_misses, mi_misses):
    (sentence, *_) = verdicts([table1_row(name, 20, loss_factor, mi_factor)])
    loss, shared = sentence.split(" Multi-information ")
    assert ("misses: " in loss) == loss_misses
    assert ("misses: " in shared) == mi_misses


def test_another_ranking_is_called_another():
    rows = [table1_row("thresholded-laplacian", 20, 1.3), table1_row("thresholded-gaussian", 20)]
    assert verdicts(rows)[1].endswith("Thresholded Gaussian < Thresholded Laplacian; that is NOT the paper's.")


def test_both_conventions_stand_side_by_side():
    scripts = [table1_row("laplacian", 1, 1.01, 0.99), table1_row("gaussian", 1)]
    equations = [replace(r, cell=replace(r.cell, variant=VARIANTS["equations"])) for r in scripts]
    grid = side_by_side([*scripts, *equations], FULL)
    assert grid.rows[0] == [
        "Laplacian", "1", "240,000", "1", "596", "602.0", "+1.0 %", "602.0", "+1.0 %",
        "536", "530.6", "-1.0 %", "530.6", "-1.0 %",
    ]  # fmt: skip
    assert len(grid.rows) == 2
    assert side_by_side(scripts, FULL) is None


def test_notes_say_what_the_solvers_had_to_do():
    figures = {"n_components": 256, "best_sample": {"active": 20.0}}
    rates = {
        name: {"explained_variance": 0.3, "active": 20.0} for name in ("one_sample", "best_sample", "deterministic")
    }
    matched = [
        {"n_samples": n, "omp": 0.5, "fista": 0.4, "fista_active": active} for n, active in ((500, 20.0), (700, 19))
    ]
    cells = [
        Cell(METHODS[name], BEST, 1, SCRIPTS, 0) for name in ("spike-and-slab", "thresholded-laplacian", "gaussian")
    ]
    rows = [row(cell, {**figures, **rates, "matched": m}) for cell, m in zip(cells, matched, strict=False)]
    dense = {**figures, **rates, "best_sample": {"explained_variance": 0.4, "active": 256.0}, "matched": None}
    notes = "\n".join(right_grid([*rows, row(cells[2], dense)], "mine", FULL).notes)
    assert "v = βD/2 = 1.28 " in notes
    assert "v = βD/2 = 1.28 " in "\n".join(right_grid(rows, "mine", QUICK).notes)
    assert "the first 500 to 700 validation patches" in notes
    assert "more than 1 % off in: Thresholded Laplacian J = 1 (19.0 of 20.0)." in notes
    assert "Gaussian have no figure under OMP and FISTA: their codes are dense, more than half of the 256" in notes


def test_rows_gather_seeds_in_order_and_leave_out_what_is_missing():
    cells = [Cell(METHODS["laplacian"], BEST, n, SCRIPTS, seed) for n in (1, 20) for seed in (0, 1337, 747)]
    measured = {cell.name: record({"a": {"b": float(cell.seed)}}) for cell in cells[:5]}
    one, many = rows_of(cells, measured)
    assert one.values("a.b") == [0, 1337, 747]
    assert many.values("a.b") == [0, 1337]
    assert many.mean("a.b") == 668.5
    assert one.text("a.b") == "695 ± 670"


def test_numbers_are_written_plainly():
    assert [short(v) for v in (1350.4, 193.24, 0.02701, 0, None, -90.36)] == [
        "1350",
        "193",
        "0.0270",
        "0",
        "–",
        "-90.4",
    ]
    assert [off_by(o, t) for o, t in ((103, 100), (97, 100), (None, 1), (1, None))] == ["+3.0 %", "-3.0 %", "–", "–"]


def test_a_grid_is_a_markdown_table_and_aligned_text(capsys):
    grid = Grid("Title", ["name", "value|s"], [["a", "1.0"], ["longer", "20.0"]], ["A note."])
    assert markdown(grid).splitlines() == [
        "**Title**", "", "| name | value\\|s |", "| --- | ---: |", "| a | 1.0 |", "| longer | 20.0 |", "", "A note.",
    ]  # fmt: skip
    print_grid(grid)
    assert capsys.readouterr().out.splitlines() == [
        "", "Title", "name    value|s", "a           1.0", "longer     20.0", "A note.",
    ]  # fmt: skip


def test_the_limit_knows_what_a_cell_costs():
    limit = Limit(1.0)
    limit.check(1000)  # nothing is known yet
    limit.learn(2, 20.0)
    limit.check(5)
    with pytest.raises(OutOfTime):
        limit.check(7)
    Limit(None).check(10**9)


def test_folders_of_other_data_are_refused(tmp_path):
    with Store(tmp_path / "a").opened(FULL, "0123"):
        pass
    for store in (Store(tmp_path / "a"), Store(tmp_path / "b", others=[tmp_path / "a"])):
        with pytest.raises(RunError, match="the data '0123', not '4567'"), store.opened(FULL, "4567"):
            pass
    # Shorter runs on the same data may be counted; the table names them.
    with Store(tmp_path / "c", others=[tmp_path / "a"]).opened(FULL.with_steps(100), "0123"):
        pass


def test_a_folder_has_one_user_at_a_time(tmp_path):
    first, second = (Store(tmp_path).opened(FULL, "0123") for _ in range(2))
    with first, pytest.raises(RunError, match="in use by another process"), second:
        pass
    with Store(tmp_path).opened(FULL, "0123"):
        pass
