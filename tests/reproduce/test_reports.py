"""What the tables and sentences say, on figures made up for the purpose."""

from dataclasses import replace

import pytest

from softspike.report.grid import Grid, markdown, print_grid
from softspike.reproduce.cell import BEST, MEAN, METHODS, SINGLE_SWITCHES, VARIANTS, WEIGHTED, Cell
from softspike.reproduce.jaccard import density
from softspike.reproduce.job import EXPERIMENTS
from softspike.reproduce.limit import Limit, OutOfTime
from softspike.reproduce.paper import SNR, TABLE1
from softspike.reproduce.rows import Measured, off_by, rows_of, short
from softspike.reproduce.setting import FULL, QUICK
from softspike.reproduce.side_by_side import side_by_side
from softspike.reproduce.store import Store
from softspike.reproduce.table1 import right_grid, switch_grid
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
    ("figures", "diverged", "said", "overall"),
    [
        ([], 3, "3 of 3 runs diverge (paper: none), not as published; posterior collapse NaN", "holds in part"),
        ([(1.0, 1.0)] * 3, 0, "feature collapse 100.00 % (straight-through 0.00 %, paper 100.00 %), as pub", "holds:"),
        (
            [(1.0, 0.2)],
            2,
            "feature collapse 20.00 % (straight-through 0.00 %, paper 100.00 %), not as",
            "holds in part",
        ),
        ([(1.0, 0.0)] * 3, 0, "posterior collapse 100.00 % (straight-through 4.00 %, paper 100.00 %), as", "in part"),
        ([(0.6, 0.0)] * 3, 0, "posterior collapse 60.00 % (straight-through 4.00 %, paper 100.00 %), not", "in part"),
        ([(0.05, 0.0)] * 3, 0, "0 of 3 runs diverge (paper: none), as published", "does not hold"),
    ],
)
def test_table_2_states_what_became_of_the_claim(figures, diverged, said, overall):
    report = EXPERIMENTS["table2"].report(table2_rows(figures, diverged), FULL, {})
    finding, last = report.findings
    assert said in finding
    assert last.startswith("Overall, the paper's claim that the subgradient fails where straight-through does not")
    assert overall in last
    (grid,) = report.grids
    assert grid.rows[1][4] == f"{diverged} of 3"


def test_table_2_says_where_the_published_loss_likes_a_collapse():
    straight, subgradient = table2_rows([(1.0, 0.0)] * 3, 0)
    for record_ in subgradient.records:
        record_["figures"]["loss"] = {"total": 170.0}
    finding = EXPERIMENTS["table2"].report([straight, subgradient], FULL, {}).findings[0]
    assert "lower than straight-through's (170.0 against 190.0)" in finding
    assert "lower than" not in EXPERIMENTS["table2"].report(table2_rows([(1.0, 0.0)], 0), FULL, {}).findings[0]


def jaccard_row(sampling, index, chance, loss=193.0, steps=240_000, middle=5):
    """Every patch in one bin of 10 or the next: a deviation of about 0.05 over 10,000 patches, an error of 0.0007."""
    histogram = [0] * 10
    histogram[middle] = histogram[middle + 1] = 5000
    figures = {"jaccard": {"index": index, "between_inputs": chance, "used_components": 9, "histogram": histogram}}
    figures |= {"best_sample": {"explained_variance": 0.3, "active": 20.0}, "loss": {"total": loss}}
    figures["jaccard"]["published_distance"] = 1 - index
    cell = Cell(METHODS["thresholded-laplacian"], sampling, 20, SCRIPTS, 0)
    return Measured(cell, [record(figures, steps=steps)])


@pytest.mark.parametrize(
    ("best", "average", "said"),
    [
        ((0.25, 0.20), (0.21, 0.20), "more consistent than average training, as the paper claims, by 0.040"),
        ((0.21, 0.20), (0.25, 0.20), "max-ELBO training is less consistent than average training"),
        ((0.40, 0.30), (0.20, 0.10), "differ by no more than chance"),  # a higher index for the same excess
        ((0.2015, 0.20), (0.20, 0.20), "max-ELBO 0.0015 (at chance)"),
    ],
)
def test_consistency_is_what_goes_beyond_chance(best, average, said):
    rows = [jaccard_row(MEAN, *average), jaccard_row(BEST, *best)]
    finding = EXPERIMENTS["jaccard"].report(rows, FULL, {}).findings[0]
    assert said in finding
    assert "not trained for as long: importance-weighted" in finding


def test_all_arms_of_the_sampling_study_are_named_at_each_length():
    rows = [jaccard_row(s, 0.2 + n / 10, 0.2, steps=24_000) for n, s in enumerate((MEAN, BEST, WEIGHTED))]
    long, brief = EXPERIMENTS["jaccard"].report([jaccard_row(BEST, 0.3, 0.2), *rows], FULL, {}).findings
    assert long.startswith("J = 20, 240,000 steps (scripts, 1 seed)")
    assert long.endswith("not trained for as long: average and importance-weighted.")
    order = [brief.index(name) for name in ("importance-weighted 0.20", "max-ELBO 0.10", "average 0 (at chance)")]
    assert order == sorted(order)
    assert "max-ELBO less average training 0.10: no verdict on the paper's claim after a shorter schedule" in brief


def test_a_loss_that_is_off_is_said():
    rows = [jaccard_row(MEAN, 0.2, 0.2, loss=177.2, steps=24_000), jaccard_row(BEST, 0.2, 0.2, 194.3, 24_000)]
    said = EXPERIMENTS["jaccard"].report(rows, FULL, {}).findings[-1]
    assert "off the paper's for average training (-8.3 % at J = 20)" in said
    assert "within 3 % for max-ELBO training" in said
    assert said.endswith("the schedule is shorter than the paper's.")
    long = [jaccard_row(MEAN, 0.2, 0.2, loss=177.2)]
    assert EXPERIMENTS["jaccard"].report(long, FULL, {}).findings[-1].endswith("not explained.")
    near = [jaccard_row(BEST, 0.2, 0.2, 194.3)]
    assert not any("not explained" in finding for finding in EXPERIMENTS["jaccard"].report(near, FULL, {}).findings)


def test_histograms_of_different_bins_become_one_density():
    fine = [0] * 200
    fine[8:12] = [1, 2, 3, 4]
    coarse = [0] * 50
    coarse[2] = 10
    assert density([fine], 50) == pytest.approx(density([coarse], 50))
    assert density([fine, coarse], 50).sum() / 50 == pytest.approx(1)


def snr_rows(factors):
    """The paper's ratios times a factor by method, at J = 1."""
    rows = []
    for name, factor in factors.items():
        paper = SNR[name, 1]
        parts = {"inference": paper.inference * factor, "generator": paper.generator * factor}
        figures = {**parts, "published": parts, "passes": 1000, "floor": 0.025}
        rows.append(row(Cell(METHODS[name], BEST, 1, SCRIPTS, 0), figures))
    return rows


def test_gradient_ratios_are_judged_by_distance_and_order():
    same = snr_rows({"gaussian": 1.0, "spike-and-slab": 1.05, "thresholded-laplacian": 1.0})
    inference, generator = EXPERIMENTS["snr"].report(same, FULL, {}).findings
    assert "Inference network (scripts): the ratios are from +0.0 % to +5.0 % off the paper's." in inference
    assert "J = 1: Gaussian > Thresholded Laplacian > Spike-and-slab, the paper's order" in generator
    other = snr_rows({"gaussian": 0.5, "spike-and-slab": 4.0, "thresholded-laplacian": 2.0})
    inference, generator, cause = EXPERIMENTS["snr"].report(other, FULL, {}).findings
    assert "from -50.0 % to +300.0 % off" in inference
    assert "NOT the paper's order, which is Gaussian > Thresholded Laplacian > Spike-and-slab" in inference
    assert cause == "Why the ratios differ from the paper's is not known."


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
    assert "v = βD/2 = 0.32 " in "\n".join(right_grid(rows, "mine", QUICK).notes)
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
