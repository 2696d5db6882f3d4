"""The gallery runs: every example as it is, only for fewer steps, counts and rows, and draws what it says."""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
import torch
from small import asks_for_probabilities

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))

# name → a figure that it prints, however short the training
PRINTED = {
    "plot_denoising": r"noisy: 20\.5\d dB",
    "plot_fashion_mnist": r"1\d\.\d of 100 parts active",
    "plot_own_posterior": r"explained variance .*: -?\d\.\d{3}",
    "plot_patches": r"2\d\.\d of 256 features active",
    "plot_sparsity": r"asked for 24, found 2\d\.\d\d active",
    "plot_uncertainty": r"90 % intervals cover \d+\.\d%",
}

# name → what takes long, and what shows the same in less time
SHORTER = {
    "plot_patches": {"40_000, 8_000": "4_000, 400"},
    "plot_sparsity": {"COUNTS = (3, 6, 12, 24)": "COUNTS = (24,)", "20_000, 8_000": "2_000, 300"},
    "plot_uncertainty": {"8_000": "2_000", "6_000": "1_500"},
}


@pytest.mark.usefixtures("one_refit")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, monkeypatch, capsys, request):
    mpl.use("Agg")
    from matplotlib import pyplot

    torch.set_num_threads(1)
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 60
    short, changed = re.subn(r"^STEPS = \d+$", "STEPS = 8", text, flags=re.MULTILINE)
    assert changed == 1
    for usual, shorter in SHORTER.get(path.stem, {}).items():
        assert usual in short
        short = short.replace(usual, shorter)
    if not asks_for_probabilities(text):
        request.getfixturevalue("no_simulation")
    monkeypatch.setattr(sys, "argv", [str(path)])
    pyplot.close("all")
    try:
        exec(compile(short, str(path), "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        pytest.skip(str(end.code))  # data that is not here
    assert re.search(PRINTED[path.stem], capsys.readouterr().out)
    drawn = [ax for number in pyplot.get_fignums() for ax in pyplot.figure(number).axes]
    assert drawn
    assert all(ax.has_data() for ax in drawn)
    pyplot.close("all")


def test_every_example_is_expected():
    assert {path.stem for path in EXAMPLES} == PRINTED.keys()
