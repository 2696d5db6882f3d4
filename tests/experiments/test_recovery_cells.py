"""The recovery recipe: cells measured once, in processes of their own, and their summary."""

import json
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments.recovery import main
from experiments.recovery_atoms import MOST_ATOMS, matched_cosines
from experiments.recovery_summary import pooled
from experiments.workers import threads_of


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_are_measured_once_and_summarised(workers: int, tmp_path: Path) -> None:
    few = ["--seeds", "2", "--steps", "5", "--refits", "1"]
    options = ["a", *few, "--methods", "hard-gaussian,topk", "--device", "cpu"]
    command = [*options, "--workers", str(workers), "--out", str(tmp_path)]
    main(command)
    cells = sorted(path.name for path in (tmp_path / "cells").iterdir())
    assert cells == [f"a-n0-t5-k5-f1-{method}-{seed}.json" for method in ("hard-gaussian", "topk") for seed in (0, 1)]
    (page,) = tmp_path.glob("*.json")
    ours, topk = (json.loads(page.read_text())["methods"][method] for method in ("hard-gaussian", "topk"))
    assert 0 <= ours["coverage_active"][0] <= 1
    assert "coverage_active" not in topk
    assert {"seconds_data", "seconds", "seconds_measure"} <= ours.keys()
    assert 0 < ours["active_expected"][0] < 16
    assert ours["ece"][0] == pytest.approx(sum(ours["ece_by_seed"]) / 2)
    bins = ours["reliability"]
    assert sum(bins["count"]) == 2 * 1024 * 16  # every entry of the test rows of both seeds
    assert all(0 <= value <= 1 for name in ("forecast", "observed") for value in bins[name])
    for path in (tmp_path / "cells").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "ece": 0.5}))
    main([*options, "--out", str(tmp_path), "--plot"])  # without workers, who would only read what is there
    assert json.loads(page.read_text())["methods"]["topk"]["ece"] == [0.5, 0.0]
    main([*options[:-3], "topk", *options[-2:], "--out", str(tmp_path)])
    assert json.loads(page.read_text())["methods"].keys() == {"hard-gaussian", "topk"}  # what was known stays
    for picture in (page.with_suffix(".png"), page.with_name(f"{page.stem}-atoms.png")):
        assert 5000 < picture.stat().st_size < 200_000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--seeds", "0"], "'0' was given, expected a whole number of at least 1"),
        (["--steps", "few"], "'few' was given, expected a whole number of at least 1"),
        (["--asked", "6"], "--asked is 6, which is 18 active, expected more than 0 and fewer than the 16 sources of a"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: list[str], said: str, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["a", *wrong, "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_bins_are_pooled_by_their_counts() -> None:
    """Two seeds with 1 and 3 forecasts in the first bin, none in the second, one of them alone in the third."""
    one, two = [[0.1, None, 0.8], [0.0, None, 1.0], [1, 0, 2]], [[0.2, None, None], [1.0, None, None], [3, 0, 0]]
    forecast, observed, count = pooled([one, two])
    assert forecast == pytest.approx([0.175, 0.8])
    assert observed == pytest.approx([0.75, 1.0])
    assert count.tolist() == [4, 2]


@pytest.mark.parametrize("n_sources", [16, 300])
def test_a_perfect_dictionary_is_a_diagonal(n_sources: int) -> None:
    """Learned atoms are the true ones, shuffled, scaled and with other signs: 1 on the diagonal and nowhere else."""
    random = torch.Generator().manual_seed(0)
    truth, activity = torch.randn(64, n_sources, generator=random), torch.rand(n_sources, generator=random)
    shuffled = torch.randperm(n_sources, generator=random)
    found = matched_cosines(-3 * truth[:, shuffled], truth, activity)
    n = min(n_sources, MOST_ATOMS)
    assert found.shape == (n, n)
    assert found.diagonal().min() > 1 - 1e-6
    assert (found - torch.eye(n)).max() < 0.7
    noise = matched_cosines(torch.randn(64, n_sources, generator=random), truth, activity)
    assert noise.diagonal().mean() < 0.5


def test_the_most_active_atoms_come_first() -> None:
    """Three atoms, the second learned badly: its activity says where the diagonal is weak."""
    learned = torch.eye(3)
    learned[:, 1] = torch.tensor([0.0, 0.6, 0.8])
    for activity, weak in (([0.1, 0.9, 0.5], 0), ([0.9, 0.5, 0.1], 1), ([0.5, 0.1, 0.9], 2)):
        diagonal = matched_cosines(learned, torch.eye(3), torch.tensor(activity)).diagonal()
        assert [round(float(v), 3) for v in diagonal] == [0.6 if place == weak else 1.0 for place in range(3)]


def test_threads_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert threads_of(2) is None
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert [threads_of(workers) for workers in (1, 2, 16)] == [8, 4, 1]
