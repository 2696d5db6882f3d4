"""Every experiment at a tiny size: what is trained, what is measured, what is written, what is never done twice."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from softspike.data import TensorRows
from softspike.methods.published import Study
from softspike.metric import active_count
from softspike.reproduce import setting
from softspike.reproduce.asked import Asked
from softspike.reproduce.cell import BEST, MEAN, METHODS, VARIANTS, WEIGHTED, Cell
from softspike.reproduce.codes import deterministic_codes
from softspike.reproduce.job import EXPERIMENTS, reproduce_job
from softspike.reproduce.page import write_page
from softspike.reproduce.paper import COLLAPSE, SNR, TABLE1
from softspike.reproduce.rows import Measured
from softspike.reproduce.setting import FULL, QUICK
from softspike.reproduce.training import _groups
from softspike.run import RunError
from softspike.train import train_batched, train_in_turn, train_replicas

TINY = replace(
    QUICK, study=Study(n_features=64, n_components=24, n_steps=12, widths=(32, 16)), n_train=400, n_valid=100,
    snr_passes=5, many_samples=3, most_samples=4,
)  # fmt: skip


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(setting, "QUICK", TINY)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All five, one after the other in one folder, under both conventions."""
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setting, "QUICK", TINY)
        for name in EXPERIMENTS:
            reproduce_job(name, Asked(out, quick=True, device="cpu", conventions="both"))
    return out


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_leaves_table_figures_and_numbers(results, name):
    text = (results / f"{name}.md").read_text()
    content = json.loads((results / f"{name}.json").read_text(), parse_constant=pytest.fail)
    assert content["setting"]["label"] in text
    assert "not the paper's setting" in text
    assert content["command"].split()[0] == "softspike"
    for table in content["tables"]:
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    pictures = [results / f"{name}.png"] if name != "dictionaries" else list((results / name).glob("*.png"))
    assert pictures
    for picture in pictures:
        with Image.open(picture) as image:
            low, high = image.convert("L").getextrema()
            assert high - low > 100
    assert len(pictures) == (1 if name != "dictionaries" else 27)  # 7 methods × 2 J, those that depart twice, and FISTA


def test_cells_are_shared_between_experiments(results):
    """Table 1: FISTA, Gaussian × 2 J, and six methods × 2 J × 2 conventions; then only what it lacks."""
    trained = {path.stem for path in (results / "cells").glob("*.safetensors")}
    assert sum(".max" in name and "subgradient" not in name and "max4" not in name for name in trained) == 2 + 24
    assert sum("subgradient.max" in name for name in trained) == 4  # Table 2
    assert sum("mean" in name or ".iw" in name or "max4" in name for name in trained) == 2 * 5  # Jaccard
    assert len(trained) == 1 + 26 + 4 + 10


def test_the_right_measures_come_first_and_every_row_has_its_baselines(results):
    tables = json.loads((results / "table1.json").read_text())["tables"]
    titles = [table["title"].split(" (")[0] for table in tables]
    assert titles == ["Codes and their statistics", "As published"] * 2 + ["Side by side"]
    assert len(tables[-1]["rows"]) == 15
    published = tables[1]
    assert len(published["rows"]) == 15
    zero = published["columns"].index("z = 0")
    for row in published["rows"]:
        assert float(row[zero]) == pytest.approx(32, rel=0.2)  # half of 64 standardised pixels
    prior = [row[published["columns"].index("prior alone")] for row in published["rows"]]
    assert prior[0] == "–"
    assert all(float(value) > 0 for value in prior[1:])


def test_the_figures_of_a_cell_are_whole_and_plausible(results):
    measured = json.loads((results / "measured-audit.json").read_text(), parse_constant=pytest.fail)
    record = measured["thresholded-laplacian.scripts.max3.s0"]
    figures = record["figures"]
    assert figures["one_sample"]["explained_variance"] < figures["best_sample"]["explained_variance"]
    assert 0 < figures["best_sample"]["active"] < 24
    loss = figures["loss"]
    assert loss["total"] == pytest.approx(loss["misfit"] + loss["magnitude"] + loss["norm"])
    assert 0 <= figures["jaccard"]["index"] <= 1
    assert sum(figures["jaccard"]["histogram"]) == 100
    assert figures["bound"] < 0
    assert record["training"]["steps"] == 12
    rivals = json.loads((results / "measured-rivals.json").read_text(), parse_constant=pytest.fail)
    assert not [name for name in rivals if name.startswith("gaussian")]  # dense: no sparse rival
    fista = measured["fista.s0"]["figures"]
    assert fista["bound"] is None
    matched = rivals["fista.s0"]["figures"]
    assert matched["omp"] > matched["fista"]
    for solver in ("omp", "fista"):
        assert matched[f"{solver}_active"] == pytest.approx(fista["best_sample"]["active"], rel=0.02)


def test_clipped_spikes_have_a_code_without_noise():
    """Heads with raw > 0 all say γ = 1 − 1e-6: the code has as many components as those, not none."""
    cell = Cell(METHODS["spike-and-slab"], BEST, 1, VARIANTS["scripts"], 0)
    coder = cell.build(TINY.study).coder
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        coder.posterior.spike.weight.zero_()
        coder.posterior.spike.bias.copy_(torch.where(torch.arange(24) < 9, 1.0, -3.0))
    settled = deterministic_codes(coder, x, x, mean_active=7.0)
    assert active_count(settled) == 9


def test_nothing_is_done_twice(results, monkeypatch, capsys):
    def never(*_, **__):
        raise AssertionError("trained or measured again")

    monkeypatch.setattr("softspike.reproduce.training.train_replicas", never)
    monkeypatch.setattr("softspike.reproduce.audit.code_patches", never)
    before = (results / "measured-audit.json").read_bytes()
    reproduce_job("table1", Asked(results, quick=True, device="cpu", conventions="both"))
    assert (results / "measured-audit.json").read_bytes() == before
    assert "As published" in capsys.readouterr().out


def test_measurements_of_another_folder_count(results, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "softspike.reproduce.job.train_cells", lambda cells, *_: pytest.fail("trained again") if cells else None
    )
    reproduce_job("table2", Asked(tmp_path / "new", quick=True, device="cpu", conventions="both", others=[results]))
    assert (tmp_path / "new/table2.md").read_text() == (results / "table2.md").read_text()


def test_measurements_under_other_conventions_of_the_same_name_are_refused(results, tmp_path):
    shutil.copytree(results, tmp_path / "old")
    measured = json.loads((tmp_path / "old/measured-audit.json").read_text())
    measured["laplacian.scripts.max3.s0"]["training"]["conventions"] = "0123"
    (tmp_path / "old/measured-audit.json").write_text(json.dumps(measured))
    asked = Asked(tmp_path / "new", quick=True, device="cpu", methods="laplacian", others=[tmp_path / "old"])
    with pytest.raises(RunError, match=r"laplacian\.scripts\.max3\.s0 was measured under other conventions"):
        reproduce_job("table1", asked)
    reproduce_job("table2", replace(asked, methods=None))  # which has no use for that cell


def test_a_diverged_cell_is_a_result(tmp_path, monkeypatch):
    wild = replace(TINY, study=replace(TINY.study, beta=1e30))
    monkeypatch.setattr(setting, "QUICK", wild)
    reproduce_job("table2", Asked(tmp_path, quick=True, device="cpu"))
    measured = json.loads((tmp_path / "measured-audit.json").read_text())
    assert all(record["training"]["diverged"]["step"] >= 1 for record in measured.values())
    text = (tmp_path / "table2.md").read_text()
    assert "1 of 1" in text
    reproduce_job("table1", Asked(tmp_path, quick=True, device="cpu", methods="thresholded-laplacian"))
    assert "Diverged runs are left out" in (tmp_path / "table1.md").read_text()


def test_the_page_is_written_from_the_files_alone(results, tmp_path):
    page = tmp_path / "docs/linear.md"
    write_page([results], page)
    tables = json.loads(page.with_name(f"{page.stem}-tables.json").read_text())
    assert list(tables) == list(EXPERIMENTS)
    assert len(tables["dictionaries"]["tables"][0]["rows"]) > 0
    text = page.read_text()
    for experiment in EXPERIMENTS.values():
        assert f"## {experiment.title}" in text
    assert "Not measured yet" not in text
    assert str(results) not in text
    for link in re.findall(r'<img src="([^"]+)"', text):
        assert (page.parent / link).is_file()
    write_page([_only_config(results, tmp_path / "empty")], tmp_path / "empty.md")
    assert (tmp_path / "empty.md").read_text().count("Not measured yet") == len(EXPERIMENTS)


def test_shorter_runs_stand_in_the_same_table(results, tmp_path):
    short, page = tmp_path / "short", tmp_path / "linear.md"
    reproduce_job("jaccard", Asked(short, quick=True, device="cpu", steps=5, samplings="max"))
    write_page([results, short], page)
    part = page.read_text().split("## Support consistency by training objective\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")]
    columns = {name: rows[0].index(name) for name in ("training", "conventions", "J", "steps", "seeds")}
    ours = [
        row for row in rows[2:] if row[columns["training"]] == "max-ELBO" and row[columns["conventions"]] == "scripts"
    ]
    assert [[row[columns[name]] for name in ("J", "steps", "seeds")] for row in ours] == [
        ["3", "12", "1"], ["3", "5", "1"], ["4", "12", "1"], ["4", "5", "1"],
    ]  # fmt: skip
    assert "Not measured yet" not in page.read_text()
    long, brief = (json.loads((tmp_path / f"linear-audit{suffix}.json").read_text()) for suffix in ("", "-5"))
    assert {record["training"]["steps"] for record in long.values()} == {12}
    assert {record["training"]["steps"] for record in brief.values()} == {5}


def test_every_table_says_how_long_and_how_often(results, tmp_path):
    write_page([results], tmp_path / "linear.md")
    heads = [
        line for line in (tmp_path / "linear.md").read_text().splitlines() if re.match(r"\| [a-z ]+ \| .*J \|", line)
    ]
    assert len(heads) == 9
    assert all("| J | steps | seeds |" in head for head in heads)


def test_the_page_says_how_it_was_run(results, tmp_path):
    """A cell that was trained again for the gradient ratios counts twice; its time too."""
    write_page([results], tmp_path / "once.md")
    (once, measured) = run_tables(tmp_path / "once.md")
    text = (tmp_path / "once.md").read_text()
    assert "Cells are shared between the tables and trained once." in text
    assert sum(int(row[-2]) for row in once) == 41
    solved = len(json.loads((results / "measured-rivals.json").read_text()))
    assert sum(int(row[-2]) for row in measured) == 41 + 10 + solved
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    ratios = json.loads((copy / "measured-snr.json").read_text())
    ratios["gaussian.max1.s0"]["training"] |= {
        "commit": "0123456+",
        "seconds": 120.0,
        "together": 1,
        "note": "By hand.",
    }
    (copy / "measured-snr.json").write_text(json.dumps(ratios))
    write_page([copy], tmp_path / "twice.md")
    twice, _ = run_tables(tmp_path / "twice.md")
    assert sum(int(row[-2]) for row in twice) == 42
    (other,) = [row for row in twice if row[1] == "0123456+"]
    assert other[-2:] == ["1", "2.0"]
    text = (tmp_path / "twice.md").read_text()
    assert "trained once" not in text
    assert "trained again for another kind of measurement: gaussian.max1." in text
    assert "By hand." in text
    assert "A + after a commit marks a tree with changes that were not committed." in text


def run_tables(page):
    """The rows of the last part's two tables."""
    parts = page.read_text().split("## How it was run")[1].split("**Measuring**")
    return [
        [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("| `")]
        for part in parts
    ]


def _only_config(results, folder):
    folder.mkdir()
    (folder / "config.json").write_bytes((results / "config.json").read_bytes())
    return folder


def test_repetition_of_atoms_is_seen():
    one, other = np.eye(6)[:, :4], np.repeat(np.eye(6)[:, :2], 2, axis=1)
    cell = Cell(METHODS["laplacian"], BEST, 1, VARIANTS["scripts"], 0)
    atoms = {"laplacian.scripts.max1.s0": one, "laplacian.scripts.max1.s1": 0.1 * other, "fista.s0": other}
    (grid,) = EXPERIMENTS["dictionaries"].report([Measured(cell, [])], TINY, atoms).grids
    assert grid.rows == [
        ["Laplacian", "scripts", "1", "–", "2", "2.00", "0.550", "0.500"]
    ]  # means of 4 and 0, 1 and .1, 0 and 1


def test_dictionaries_are_kept_in_one_small_file(results):
    with np.load(results / "dictionaries.npz") as archive:
        atoms = {name: archive[name] for name in archive.files}
    assert {path.stem for path in (results / "cells").glob("*.safetensors")} == atoms.keys()
    assert all(value.shape == (64, 24) and value.dtype == np.float16 for value in atoms.values())


# ── the study's plan ──


def full_cells(name):
    scope = Asked(out=None).scope()  # type: ignore[arg-type]
    assert scope.setting == FULL
    return EXPERIMENTS[name].cells(scope)


def test_the_full_study_is_the_papers():
    cells = full_cells("table1")
    assert {cell.row for cell in cells} == TABLE1.keys()
    assert len({cell.name for cell in cells}) == 3 + 6 + 6 * 2 * 2 * 3
    assert {cell.seed for cell in cells} == {0, 1337, 747}
    assert {(cell.method.name, cell.n_samples) for cell in full_cells("snr")} == SNR.keys()
    assert {cell.n_samples for cell in full_cells("table2")} == {n for _, n in COLLAPSE}
    assert {cell.n_samples for cell in full_cells("jaccard")} == {20, 100}
    assert "the paper:" not in FULL.label
    assert "1,000 steps of 100 (the paper: 240,000)" in FULL.with_steps(1000).label


def test_cells_of_one_shape_are_trained_together():
    """Two heads, three, four, and FISTA; of an objective without kernels, the seeds of one model."""
    groups = list(_groups({cell.name: cell for cell in full_cells("table1")}.values(), Study(n_steps=1), 1000))
    assert sorted(map(len, groups)) == [3, 12, 24, 6 + 3 * 12]
    assert [len(group) for group in _groups(groups[1], Study(n_steps=1), 10)] == [10] * (len(groups[1]) // 10) + [2]
    plain = [group for group in _groups(full_cells("jaccard"), Study(n_steps=1), 1000) if group[0].sampling is not BEST]
    assert [(group[0].sampling.name, group[0].n_samples) for group in plain[:2]] == [("mean", 20), ("iw", 20)]
    assert all([cell.seed for cell in group] == [0, 1337, 747] for group in plain)
    assert all(len({cell.name.rsplit(".", 1)[0] for cell in group}) == 1 for group in plain)


@pytest.mark.parametrize("sampling", [MEAN, WEIGHTED], ids=lambda sampling: sampling.name)
def test_cells_of_the_sampling_study_are_batched(sampling):
    """By the one pass that a GPU takes for them, here on a CPU; as in turn, to 1e-3 of each parameter's norm."""
    cells = [cell for cell in full_cells("jaccard") if cell.sampling is sampling and cell.n_samples == 20]
    study = Study(n_features=12, n_components=9, n_steps=6, batch_size=16, widths=(16, 10))
    group = next(_groups(cells, study, 1000))
    rows, seeds = TensorRows(torch.randn(60, 12)), [cell.seed for cell in group]
    assert len(group) == 3
    trained = []
    for engine in (train_batched, train_in_turn):
        built = [cell.build(study) for cell in group]
        train_replicas([b.coder for b in built], rows, built[0].recipe, seeds=seeds, engine=engine)
        trained.append([b.coder for b in built])
    for one, other in zip(*trained, strict=True):
        for (name, a), b in zip(one.named_parameters(), other.parameters(), strict=True):
            assert (a - b).norm() <= 1e-3 * b.norm(), name


def test_switches_can_be_thrown_one_at_a_time():
    asked = "scripts,scripts-logit,scripts-start-0,scripts-no-delay,scripts-single-gradient,scripts-no-norm,equations"
    scripts, *single, equations = Asked(out=None, conventions=asked).scope().variants  # type: ignore[arg-type]
    changed = []
    for variant in single:
        own, before, after = (vars(v.conventions) for v in (variant, scripts, equations))
        (name,) = [name for name in own if own[name] != before[name]]
        assert own[name] == (0 if name == "norm" else after[name])  # which both have
        changed.append(name)
    assert sorted(changed) == sorted(vars(equations.conventions))


def test_names_leave_out_what_makes_no_difference():
    scripts, equations = VARIANTS.values()
    names = [Cell(METHODS["gaussian"], BEST, 20, variant, 0).name for variant in (scripts, equations)]
    assert names == ["gaussian.max20.s0"] * 2
    assert Cell(METHODS["fista"], BEST, 1, scripts, 7).name == "fista.s7"
    assert Cell(METHODS["laplacian"], BEST, 1, equations, 0).name == "laplacian.equations.max1.s0"


def test_single_switches_stand_in_their_own_table_alone(results, tmp_path):
    """A cell with one switch set could also be a row of Table 2, but is no part of what that compares."""
    switched, page = tmp_path / "switched", tmp_path / "linear.md"
    asked = Asked(switched, quick=True, device="cpu", conventions="scripts-no-norm", methods="thresholded-laplacian")
    reproduce_job("table1", asked)
    write_page([results, switched], page)
    tables = json.loads(page.with_name("linear-tables.json").read_text())
    named = [name for name, part in tables.items() if re.search("no-norm|no ‖A‖", json.dumps(part, ensure_ascii=False))]
    assert named == ["table1", "dictionaries"]
