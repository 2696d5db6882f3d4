"""What the tables and sentences say, on figures made up for the purpose."""

import pytest

from softspike.report.grid import Grid, markdown, print_grid
from softspike.reproduce.cell import BEST, MEAN, METHODS, SINGLE_SWITCHES, VARIANTS, Cell
from softspike.reproduce.job import EXPERIMENTS
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import Measured, off_by, rows_of, short
from softspike.reproduce.setting import FULL
from softspike.reproduce.store import Store
from softspike.reproduce.table1 import switch_grid
from softspike.reproduce.verdict import verdicts
from softspike.run import RunError

SCRIPTS = VARIANTS["scripts"]


def record(figures, diverged=None, steps=240_000):
    return {"training": {"diverged": diverged, "steps": steps}, "figures": figures}


def row(cell, *figures, diverged=0):
    lost = [record(None, {"step": 3, "cause": "the loss is not finite"})] * diverged
    return Measured(cell, [record(figure) for figure in figures] + lost)


def table1_row(name, n_samples, loss_factor=1.0, mi_factor=1.0):
    """The paper's own figures, times a factor."""
    paper = TABLE1[name, None if name == "fista" else n_samples]
    figures = {
        "loss": {"total": paper.loss * loss_factor},
        "multi_information": {"published": paper.multi_information * mi_factor},
        "best_sample": {"active": 20.0},
        "n_components": 256,
    }
    return row(Cell(METHODS[name], BEST, n_samples, SCRIPTS, 0), figures)


def test_single_switches_stand_between_the_conventions_they_mix():
    figures = {"loss": {"total": 250.0, "norm": 1.0, "zero": 128.0}, "multi_information": {"published": 200.0}}
    figures |= {"prior_multi_information": 180.0, "best_sample": {"active": 20.0}}
    variants = [VARIANTS["scripts"], VARIANTS["equations"], SINGLE_SWITCHES["scripts-logit"]]
    rows = [row(Cell(METHODS["spike-and-slab"], BEST, 1, variant, 0), figures) for variant in variants]
    grid = switch_grid(rows[2:], rows[:2], FULL)
    assert [line[1] for line in grid.rows] == [variant.title for variant in variants]
    assert all(len(line) == len(grid.columns) for line in grid.rows)
    assert [line[3] for line in grid.rows] == ["250.0"] * 3


VARIATIONAL = [(name, n) for name, n in TABLE1 if n is not None]


def test_a_perfect_reproduction_is_called_one():
    said = verdicts([table1_row(name, n) for name, n in VARIATIONAL] + [table1_row("fista", 1)])
    assert "in 14 of 14 rows. multi-information is within 4 % in 14 of 14 rows." in said[0]
    assert said[1].startswith("Ranking by loss at J = 1: Thresholded Laplacian < Thresholded Laplacian + Gamma")
    assert all(sentence.endswith("that is the paper's.") for sentence in said[1:3])
    assert "loss 101.0 (paper: 101), 7.8% of components active" in said[3]


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
    loss, shared = sentence.split(" multi-information ")
    assert ("misses: " in loss) == loss_misses
    assert ("misses: " in shared) == mi_misses


def test_another_ranking_is_called_another():
    rows = [table1_row("thresholded-laplacian", 20, 1.3), table1_row("thresholded-gaussian", 20)]
    assert verdicts(rows)[1].endswith("Thresholded Gaussian < Thresholded Laplacian; that is NOT the paper's.")


def table2_rows(figures, diverged):
    cells = [
        Cell(METHODS["thresholded-laplacian"], BEST, 20, variant, 0)
        for variant in (SCRIPTS, SCRIPTS.with_subgradient())
    ]
    fine = {"collapse": {"posterior": 0.04, "feature": 0.0, "never_active": 0.0}, "loss": {"total": 190.0}}
    fine["best_sample"] = {"explained_variance": 0.3, "active": 20.0}
    others = [{**fine, "collapse": {"posterior": p, "feature": f, "never_active": 0.0}} for p, f in figures]
    return [row(cells[0], fine, fine, fine), row(cells[1], *others, diverged=diverged)]


@pytest.mark.parametrize(
    ("figures", "diverged", "said"),
    [
        ([], 3, "3 of 3 runs diverge, 0 collapse entirely; posterior collapse NaN, against 4.00 % with"),
        ([(1.0, 1.0)] * 3, 0, "as the paper claims"),
        ([(1.0, 0.2)], 2, "as the paper claims"),
        ([(1.0, 1.0), (0.1, 0.0), (0.1, 0.0)], 0, "holds in part"),
        ([(0.6, 0.0)] * 3, 0, "holds in part"),
        ([(0.05, 0.0)] * 3, 0, "does not hold"),
    ],
)
def test_table_2_states_what_became_of_the_claim(figures, diverged, said):
    report = EXPERIMENTS["table2"].report(table2_rows(figures, diverged), FULL, {})
    (finding,) = report.findings
    assert said in finding
    (grid,) = report.grids
    assert grid.rows[1][2] == f"{diverged} of 3"


def test_the_sampling_study_compares_max_with_average():
    def rows(best, average):
        cells = [Cell(METHODS["thresholded-laplacian"], sampling, 20, SCRIPTS, 0) for sampling in (MEAN, BEST)]
        names = ("index", "between_inputs", "used_components", "published_distance")
        values = [dict.fromkeys(names, value) for value in (average, best)]
        rate = {"explained_variance": 0.3, "active": 20.0}
        figures = [{"jaccard": value, "best_sample": rate, "loss": {"total": 193.0}} for value in values]
        return [row(cell, figure) for cell, figure in zip(cells, figures, strict=True)]

    report = EXPERIMENTS["jaccard"].report
    assert "0.200, higher than the 0.100" in report(rows(0.2, 0.1), FULL, {}).findings[0]
    assert "0.100, not higher than the 0.200" in report(rows(0.1, 0.2), FULL, {}).findings[0]


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
