"""What `benchmarks.fused` counts and writes, as far as it can be seen without a GPU."""

import json
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

pytest.importorskip("triton", reason="kernels need Triton")

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import fused
from benchmarks.best_of_bare import BareBestOf
from benchmarks.floor import Load, Rates, floor, loads_of
from benchmarks.fused import coders_of, epoch_times, row_of
from benchmarks.whole_runs import fista_whole, starts

from softspike.data import TensorRows
from softspike.methods.published import Study
from softspike.train.fused.engine import prepare

SMALL = Study(n_features=11, n_components=19, n_steps=40, batch_size=9, widths=(21, 17))
RATES = Rates(flop=1e12, flop_bfloat16=2e12, bytes=1e11)


@pytest.mark.parametrize("study", [SMALL, Study()], ids=["small", "the paper's"])
def test_products_are_those_that_autograd_makes(study):
    """One sample by the hand-written loop, as torch counts it; and J samples scored are J products with the atoms."""
    bare = BareBestOf(study.n_features, study.n_components, study.widths, prior=0.1, level=0.25, laplace=True)
    with FlopCounterMode(display=False) as counter:
        bare.losses(torch.randn(study.batch_size, study.n_features), 1, 1e-2).mean().backward()
    found = floor(study, [Load(1, 2)], RATES)
    assert found["GFLOP"] * 1e9 == pytest.approx(counter.get_total_flops())
    best = floor(study, [Load(20, 2)], RATES)
    scored = 20 * 2 * study.batch_size * study.n_features * study.n_components
    assert best["GFLOP_scored"] * 1e9 == pytest.approx(scored)
    assert best["arithmetic_us"] - found["arithmetic_us"] == pytest.approx(scored / 2e12 * 1e6)  # at its own rate
    assert best["floor_us"] == max(best["arithmetic_us"], best["bytes_us"])


def a_run(methods, samples):
    coders, recipe, seeds = coders_of(methods, samples, [0], SMALL)
    return prepare(coders, TensorRows(torch.randn(18, 11)), recipe, seeds, "cpu")


def test_bytes_are_those_of_the_buffers():
    """Of two methods with two and three heads, and two J each."""
    run = a_run(["thresholded-laplacian", "spike-and-slab"], [1, 4])
    r, loads = run.step.replicas, loads_of(run.step.replicas.families)
    assert sorted(loads) == [Load(1, 2), Load(1, 3), Load(4, 2), Load(4, 3)]
    found = floor(SMALL, loads, RATES)
    heads = [family.heads for family in r.families]
    passed = [*r.hidden, *r.hidden_slopes, *heads, *heads, r.codes, r.errors]  # slopes at heads lie where heads were
    activations = r.x.nbytes + 2 * sum(each.nbytes for each in passed)
    assert found["MB_activations"] * 1e6 == pytest.approx(activations)
    weights = [layer.weight for layer in r.layers] + [family.affine.weight for family in r.families]
    moved = 6 * sum(weight.nbytes for weight in weights) - r.layers[0].weight.nbytes + 5 * r.atoms.nbytes
    assert (found["MB"] - found["MB_activations"]) * 1e6 == pytest.approx(moved)


def test_a_row_has_the_range_of_its_epochs():
    run = a_run(["laplacian", "thresholded-laplacian"], [1])
    row = row_of(run, SMALL, epoch_times(run, 2), 0.0, RATES)
    least, most = row["epochs_us"]
    assert 0 < least <= row["us"] <= most
    assert row["spread"] == most / least
    assert row["us_per_replica"] == row["us"] / 2
    assert row["of_floor"] == row["floor_us"] / row["us"]


def test_parts_are_merged_into_one_file(tmp_path, monkeypatch):
    """A part takes the place of its own rows alone; a file of another machine is refused and stays."""
    figures = iter(range(10))

    def part(*names):
        return lambda path: ((name, {"us": next(figures)}) for name in names)

    parts = {"times": part("times", "times"), "growth": part("growth_J", "large")}
    monkeypatch.setattr(fused, "PARTS", parts)
    file, about = tmp_path / "speed.json", {"device": "one", "torch": "2"}
    for only in (["times"], ["growth"], ["times"]):
        fused.write(file, only, about, None)
    content = json.loads(file.read_text())
    assert {name: [row["us"] for row in content[name]] for name in ("times", "growth_J", "large")} == {
        "times": [4, 5], "growth_J": [2], "large": [3],
    }  # fmt: skip
    assert set(content["seconds"]) == {"times", "growth"}
    with pytest.raises(SystemExit, match="give another file"):
        fused.write(file, ["times"], {**about, "device": "two"}, None)
    assert json.loads(file.read_text()) == content


@pytest.mark.usefixtures("no_simulation", "one_refit")
def test_whole_trainings_are_timed():
    study = Study(n_features=11, n_components=19, n_steps=3, batch_size=9, widths=(21, 17))
    row = fista_whole(None, "cpu", study)
    assert row["seconds"] > 0
    assert (row["steps"], row["dictionaries"], row["diverged"]) == (3, 3, 0)
    took = starts(200, "cpu", max_steps=2)
    assert min(took[name] for name in ("one_first", "one", "four")) > 0
