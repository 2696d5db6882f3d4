"""What the reports say of switches, of Table 2, of support consistency and of gradient ratios follows from figures."""

import pytest
from made_rows import SCRIPTS, record, row

from softspike.reproduce.cell import BEST, MEAN, METHODS, SINGLE_SWITCHES, VARIANTS, WEIGHTED, Cell
from softspike.reproduce.jaccard import density
from softspike.reproduce.job import EXPERIMENTS
from softspike.reproduce.paper import SNR
from softspike.reproduce.rows import Measured
from softspike.reproduce.setting import FULL


def test_single_switches_are_told_by_what_they_move():
    losses = {**VARIANTS, **SINGLE_SWITCHES}
    kept = {"scripts": 197.0, "equations": 191.0, "scripts-no-norm": 197.5, "scripts-single-gradient": 190.5}
    cells = {name: Cell(METHODS["thresholded-laplacian"], BEST, 20, losses[name], 0) for name in kept}
    rows = [Measured(cells[name], [record({"loss": {"total": loss}})], [0]) for name, loss in kept.items()]
    other = record({"loss": {"total": 250.0}})  # a seed that only the scripts' row has: left out
    rows[0] = Measured(cells["scripts"], [*rows[0].records, other], [0, 747])
    *_, said = EXPERIMENTS["table1"].report(rows, FULL, {}).findings
    assert said == (
        "Thresholded Laplacian, J = 20: one switch alone moves the scripts' loss of 197.0 (seed 0) by -6.5 "
        "(dz/dμ = 1), +0.5 (no ‖A‖ term in training); all of the paper's text together -6.0."
    )
    without = EXPERIMENTS["table1"].report(rows[:2], FULL, {}).findings
    assert not any("one switch" in sentence for sentence in without)


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
    assert last.startswith("Overall, the paper's claim (the subgradient fails where straight-through does not)")
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
    assert not any("not known" in finding for finding in (inference, generator))
    inference, generator = EXPERIMENTS["snr"].report(other, FULL, {}).findings
    assert "from -50.0 % to +300.0 % off the paper's. Why they differ from the paper's is not known." in inference
    assert "NOT the paper's order, which is Gaussian > Thresholded Laplacian > Spike-and-slab" in inference
