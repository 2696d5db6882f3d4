"""report, runs and show, from the command line: what they write and say, for runs of every kind and state."""

import base64
import io
import json
import os
import re
import shutil
import signal
import sys
import time
import urllib.request

import numpy as np
import pytest
from command import softspike, start
from pages import KINDS, N_ROWS, data_of, reported, rows
from PIL import Image
from small import small_data

from softspike import SparseCoder
from softspike.run import RunFolder


@pytest.fixture(scope="module")
def bench(report_bench):
    return report_bench


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_of_every_kind(pages, kind):
    page = pages[kind]
    assert (page.parent.name, page.name) == (kind, "report.html")
    (run,) = data_of(page)["runs"]
    shape, n_atoms, _ = KINDS[kind]
    drawn = {1: "bars", 2: "grey", 3: "colour"}[len(shape)]
    assert run["kind"] == ("grey" if kind == "guessed" else drawn)
    assert run["guessed"] == (kind == "guessed")
    assert run["atoms"] == n_atoms
    assert run["inputs"] == N_ROWS
    text = page.read_text(encoding="utf-8")
    summary = json.loads(page.with_name("summary.json").read_text())
    assert f"{summary['explained_variance']:.3f}" in text
    assert "Measured on rows it was trained on" in text
    assert ("of the methods only hard-gaussian" in text) == (kind in ("topk", "dense"))
    assert not re.search(r"(src|href)=\"(?!#|data:)", text)  # nothing is fetched
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")


def test_without_a_terminal_every_stage_is_a_line(bench):
    lines = softspike("report", "bars", folder=bench).err.splitlines()
    stages = ["reading", "coding the inputs", "baselines", "usage and partners of each atom", "similar atoms"]
    stages += ["rate against distortion", "support consistency", "calibration"]
    assert [re.fullmatch(r"bars: (.*), \d+\.\d s", line)[1] for line in lines] == stages


def test_the_summary_on_the_page_is_that_of_evaluate(bench):
    np.save(bench / "unseen.npy", rows((8, 8), seed=5))
    page = reported(bench, "grey", "--data", "unseen.npy", "-o", "sub/page.html").read_text(encoding="utf-8")
    out = softspike("evaluate", "grey", "unseen.npy", folder=bench).out
    figures = re.findall(r"(?:explained variance|OMP, same dictionary|principal components): (\d\.\d+)", out)
    assert len(figures) == 3
    assert all(figure in page for figure in figures)
    assert f"measured on {N_ROWS} rows of unseen.npy" in page
    assert "Measured on rows it was trained on" not in page


def test_without_data_the_stored_figures_are_shown_and_what_is_missing_is_said(bench, tmp_path):
    shutil.copytree(bench / "grey", tmp_path / "run")  # the data stays behind
    page = reported(tmp_path, "run")
    (run,) = data_of(page)["runs"]
    assert run["measured"] is False
    assert run["atoms"] == 48
    text = page.read_text(encoding="utf-8")
    assert "grey.npy, which it was trained on, was not found. Usage, inputs and calibration are missing" in text
    assert "run: grey.npy, which it was trained on, was not found" in softspike("report", "run", folder=tmp_path).err
    assert f"{json.loads((tmp_path / 'run/summary.json').read_text())['explained_variance']:.3f}" in text


def test_data_that_changed_is_not_taken_for_the_runs_own(bench, tmp_path):
    shutil.copytree(bench / "grey", tmp_path / "run")
    np.save(tmp_path / "grey.npy", rows((8, 8), seed=9))
    page = reported(tmp_path, "run")
    assert data_of(page)["runs"][0]["measured"] is False
    assert "grey.npy is not the data that it was trained on any more" in page.read_text(encoding="utf-8")


def test_a_stopped_run_is_shown_as_its_checkpoint_left_it(pages):
    text = pages["stopped"].read_text(encoding="utf-8")
    assert "Unfinished: 40 of 60 steps are done; what is shown is step 40." in text
    assert data_of(pages["stopped"])["runs"][0]["atoms"] == 48
    assert "Diverged" not in text


def test_a_diverged_run_says_so(pages):
    stored = json.loads(pages["diverged"].with_name("diverged.json").read_text())
    text = pages["diverged"].read_text(encoding="utf-8")
    assert f"Diverged: at step {stored['step']}, " in text
    assert "there is no dictionary to show" in text
    assert data_of(pages["diverged"])["runs"][0]["kind"] == ""


def test_runs_side_by_side(pages):
    page = pages["several"]
    data = data_of(page)
    assert [run["name"] for run in data["runs"]] == ["grey", "again", "bars", "diverged"]
    (pair,) = data["pairs"]  # bars have another width
    assert (pair["base"], pair["other"], pair["blocks"]["first"]["shape"]) == (0, 1, [40])
    text = page.read_text(encoding="utf-8")
    assert "8 atoms of the larger dictionary have no partner" in text
    assert "Not matched with grey (64 features): bars (20 features)." in text


def test_the_page_of_several_runs_is_where_the_command_was_given(bench):
    assert reported(bench, "diverged", "grey-stopped") == bench / "report.html"


def test_a_coder_that_was_saved_from_python(tmp_path):
    coder = SparseCoder(20, n_active=3, max_steps=5, random_state=0).fit(small_data())
    coder.save(tmp_path / "mine")
    assert data_of(reported(tmp_path, "mine"))["runs"][0]["atoms"] == 20
    assert "mine" in softspike("runs", folder=tmp_path).out
    assert softspike("show", "mine", folder=tmp_path).code == 0


def test_a_report_is_served_until_it_is_interrupted(bench):
    serving = start("report", "bars", "--serve", folder=bench)
    prints = serving.prints / "out"
    end, served = time.monotonic() + 200, False
    try:
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", prints.read_text() if prints.exists() else "")):
            assert time.monotonic() < end
            time.sleep(0.02)
        served = True
        with urllib.request.urlopen(found[0], timeout=10) as answer:
            assert answer.read() == (bench / "bars/report.html").read_bytes()
    finally:  # commands that come after would wait for this one
        os.kill(serving.pid, signal.SIGINT if served else signal.SIGKILL)
        outcome = serving.wait()
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "stopped"


# ── runs and show ──


def test_runs_are_listed_with_their_figures(bench):
    lines = softspike("runs", folder=bench).out.splitlines()
    head, table = lines[0].split(), {line.split()[0]: line for line in lines[1:]}
    assert head[0] == "run"
    assert table.keys() == {*KINDS, "grey-stopped", "diverged"}
    for kind in KINDS:
        summary = json.loads((bench / kind / "summary.json").read_text())
        assert f"{summary['explained_variance']:.3f}" in table[kind]
        assert " finished " in table[kind]
        assert f" {KINDS[kind][1]} " in table[kind]
    assert " stopped" in table["grey-stopped"]
    last = json.loads((bench / "grey-stopped/metrics.jsonl").read_text().splitlines()[-1])
    assert {f"≈{1 - last['misfit']:.2f}", f"≈{last['active']:.1f}"} <= set(table["grey-stopped"].split())
    assert " diverged" in table["diverged"]
    holder = RunFolder(bench / "grey").lock()
    assert re.search(r"^grey .* running ", softspike("runs", folder=bench).out, re.MULTILINE)
    del holder


def test_runs_where_there_are_none(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other/config.json").write_text('{"name": "something else"}')
    outcome = softspike("runs", folder=tmp_path)
    assert outcome.code == 0
    assert outcome.out.startswith("no runs in .")


@pytest.mark.parametrize("kind", ["grey", "bars", "grey-stopped", "diverged"])
def test_show(bench, kind):
    outcome = softspike("show", kind, folder=bench)
    assert outcome.code == 0, outcome.err
    assert "\x1b" not in outcome.out
    assert re.search(r"method: hard-gaussian", outcome.out)
    states = {"grey-stopped": "60 of 60  (stopped", "diverged": "diverged · at step"}
    assert states.get(kind, "60 of 60  (finished") in outcome.out
    assert ("explained variance: " in outcome.out) == (kind in KINDS)
    assert ("explained variance, roughly: 0." in outcome.out) == (kind == "grey-stopped")
    assert ("(20 features)" if kind == "bars" else "(8 × 8)") in outcome.out
    assert ("not what is trained; z = 0 has " in outcome.out) == (kind in KINDS)


def test_a_run_stopped_before_its_first_figures_has_the_steps_that_are_saved(bench, tmp_path):
    shutil.copytree(bench / "grey-stopped", tmp_path / "early")
    (tmp_path / "early/metrics.jsonl").unlink()
    (saved,) = (tmp_path / "early/checkpoints").glob("step-*.safetensors")
    outcome = softspike("show", "early", folder=tmp_path)
    assert f"steps: {int(saved.stem[5:])} of 60  (stopped)" in outcome.out
    assert int(saved.stem[5:]) > 0


def test_a_coder_loaded_from_a_run_shows_what_the_run_measured(bench, pages):
    coder, summary = SparseCoder.load(bench / "colour"), json.loads((bench / "colour/summary.json").read_text())
    shown = coder._repr_html_()
    assert "24 atoms of 4 × 5 × 3, 4 asked to be active" in shown
    assert f"explained variance {summary['explained_variance']:.3f}, {summary['active']:.2f} active" in shown
    assert f"{summary['dead']} dead, on {N_ROWS} training rows" in shown
    coder.set_params(max_steps=3).fit(small_data())
    assert "explained variance" not in coder._repr_html_()  # those were of another dictionary
    assert "24 atoms of 4 × 5 × 3" in pages["colour"].read_text(encoding="utf-8")


def test_a_coder_loaded_from_a_run_draws_pictures_as_the_data_was(bench):
    from matplotlib import pyplot

    coder = SparseCoder.load(bench / "colour")
    (height, width, _), _, _ = KINDS["colour"]
    png = base64.b64decode(re.search(r"base64,([^\"]+)\"", coder._repr_html_())[1])
    with Image.open(io.BytesIO(png)) as picture:
        assert picture.mode == "RGB"
    drawn = coder.plot_components().images[0].get_array()
    pyplot.close("all")
    assert drawn.shape[2] == 3
    assert (drawn.shape[0] - 1) % (height + 1) == (drawn.shape[1] - 1) % (width + 1) == 0


@pytest.mark.parametrize(
    ("environment", "sign"), [({"TERM": "xterm-256color"}, "▀"), ({"TERM": "xterm-kitty"}, "\x1b_Ga=T,f=100,m=")]
)
def test_a_terminal_shows_the_dictionary(bench, capsys, monkeypatch, environment, sign):
    from softspike.command.listing import show_job

    for name in ("TMUX", "KITTY_WINDOW_ID", "TERM_PROGRAM", "NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_job(bench / "grey")
    assert sign in capsys.readouterr().out


def test_a_terminal_says_where_bars_are_to_be_seen(bench, capsys, monkeypatch):
    from softspike.command.listing import show_job

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    show_job(bench / "bars")
    assert "its atoms are not pictures; to see them as bars: softspike report " in capsys.readouterr().out
