"""softspike reproduce as a command: its two phases, its interruption and continuation, its limits, its refusals."""

import json
import os
import shutil
import signal
import time

import pytest
from command import softspike, start

from softspike.run import read_tensors, write_tensors

# Small enough for seconds: one method, one seed, few steps; the sizes are those of --quick.
FEW = ["--quick", "--device", "cpu", "--methods", "fista,laplacian"]
CELLS = ["fista.s0", "laplacian.scripts.max1.s0", "laplacian.scripts.max20.s0"]


def figures(folder):
    return {
        name: record["figures"] for name, record in json.loads((folder / "measured-audit.json").read_text()).items()
    }


def times(folder):
    return {path.stem: path.stat().st_mtime_ns for path in folder.glob("*.safetensors")}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A run that was left alone."""
    folder = tmp_path_factory.mktemp("straight")
    done = softspike("reproduce", "table1", *FEW, "--steps", 60, "-o", folder)
    assert done.code == 0, done.err
    return folder, done


def test_prints_the_table_and_leaves_the_files(straight):
    folder, done = straight
    assert "quick: 60 steps of 100, embedded photographs" in done.out
    assert "not the paper's setting" in done.out
    for line in ("As published", "Codes and their statistics", "Laplacian", "FISTA"):
        assert line in done.out
    names = {path.name for path in folder.iterdir()}
    assert names >= {"table1.md", "table1.json", "table1.png", "measured-audit.json", "dictionaries.npz", "config.json"}
    assert times(folder / "cells").keys() == set(CELLS)
    assert figures(folder).keys() == set(CELLS)


def test_an_interrupted_run_goes_on_where_it_stopped(straight, tmp_path):
    """Killed outright after its first cell, then interrupted by hand after its second, then left alone."""
    command = ["reproduce", "table1", *FEW, "--steps", 60, "-o", tmp_path / "out"]
    running = start(*command)
    wait_for(tmp_path / "out/cells", 1)
    os.kill(running.pid, signal.SIGKILL)
    assert running.wait().code == -signal.SIGKILL
    first = times(tmp_path / "out/cells")

    running = start(*command)
    wait_for(tmp_path / "out/cells", len(first) + 1)
    os.kill(running.pid, signal.SIGINT)
    stopped = running.wait()
    if stopped.code != 0:  # it may have been quicker than we
        assert stopped.code == 130
        assert "run the same command again to go on" in stopped.err.splitlines()[-1]
    second = times(tmp_path / "out/cells")
    assert first.items() <= second.items()

    finished = softspike(*command)
    assert finished.code == 0, finished.err
    assert second.items() <= times(tmp_path / "out/cells").items()
    assert figures(tmp_path / "out") == figures(straight[0])


def wait_for(folder, n_cells, seconds=60):
    until = time.monotonic() + seconds
    while len(times(folder)) < n_cells and time.monotonic() < until:
        time.sleep(0.01)
    assert len(times(folder)) >= n_cells


def test_training_and_measuring_are_two_phases(straight, tmp_path):
    """Trained with the models elsewhere, then measured from their files alone."""
    command = ["reproduce", "table1", *FEW, "--steps", 60, "-o", tmp_path / "out", "--cells", tmp_path / "models"]
    trained = softspike(*command, "--train-only")
    assert trained.code == 0, trained.err
    assert "3 cells are trained" in trained.out
    assert not (tmp_path / "out/measured-audit.json").exists()
    before = times(tmp_path / "models")
    measured = softspike(*command)
    assert measured.code == 0, measured.err
    assert "] training" not in measured.out
    assert times(tmp_path / "models") == before
    assert figures(tmp_path / "out") == figures(straight[0])


def test_stops_at_its_limit_and_goes_on(tmp_path):
    command = ["reproduce", "table1", *FEW, "--steps", 5, "-o", tmp_path / "out"]
    stopped = softspike(*command, "--limit-minutes", "0.000001")
    assert stopped.code == 1
    assert "of 3 missing cells 0 are trained and 0 measured; run the same command again" in stopped.sentence


def test_the_page_names_no_folder(straight, tmp_path):
    done = softspike("reproduce", "page", straight[0], "-o", tmp_path / "linear.md")
    assert done.code == 0, done.err
    text = (tmp_path / "linear.md").read_text()
    assert "not the paper's setting" in text
    assert "softspike reproduce table1 --quick" in text
    assert str(straight[0]) not in text
    assert "Not measured yet: `softspike reproduce snr" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give --data IMAGES.mat"),
        (["--data", "nothing.npy"], "does not exist"),
        (["--quick", "--conventions", "mine"], "--conventions names 'mine', expected some of: scripts, equations"),
        (["--quick", "--seeds", "0;1"], "--seeds is '0;1'"),
        (["--quick", "--methods", "lasso"], "--methods names 'lasso'"),
        (["--quick", "--samplings", "iw"], "--samplings names iw, but table1 is about max"),
        (["--quick", "--data", "nothing.npy"], "--quick takes the embedded photographs, and --data is nothing.npy"),
        (["--quick", "--steps", "0"], "--steps is 0"),
        (["--quick", "--together", "0"], "--together is 0"),
        (["--quick", "--limit-minutes", "-1"], "--limit-minutes is -1"),
        (["--quick", "--device", "tpu9"], "device is 'tpu9'"),
    ],
)
def test_wrong_usage_is_one_sentence(tmp_path, options, said):
    done = softspike("reproduce", "table1", *options, "-o", tmp_path / "out")
    assert done.code == 2
    assert said in done.sentence
    assert not (tmp_path / "out").exists()


def test_a_folder_holds_one_setting(straight, tmp_path):
    done = softspike("reproduce", "table1", *FEW, "--steps", 61, "-o", straight[0])
    assert done.code == 2
    assert "holds a study with the setting" in done.sentence
    nothing = softspike("reproduce", "page", tmp_path, "-o", tmp_path / "page.md")
    assert nothing.code == 2
    assert "has no config.json" in nothing.sentence


@pytest.mark.parametrize(("table", "named"), [("snr", "fista"), ("snr", "gaussian,fista"), ("table2", "gaussian")])
def test_methods_that_a_table_has_no_row_for_are_refused(tmp_path, table, named):
    done = softspike("reproduce", table, "--quick", "--methods", named, "-o", tmp_path / "out")
    assert done.code == 2
    strange = named.split(",")[-1]
    assert f"--methods names {strange}, but {table} is about " in done.sentence
    assert "thresholded-laplacian; leave --methods out" in done.sentence
    assert not (tmp_path / "out").exists()


def test_out_has_a_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = softspike("reproduce", "table2", "--quick", "--steps", 2, "--device", "cpu", "--train-only")
    assert done.code == 0, done.err
    assert len(times(tmp_path / "reproduced/table2/cells")) == 4
    for table in ("table1", "table2", "snr", "jaccard", "dictionaries"):
        assert f"(default: reproduced/{table})" in " ".join(softspike("reproduce", table, "--help").out.split())


@pytest.mark.parametrize(
    ("steps", "data", "said"),
    [(300, None, "other steps than asked for (60, not 300)"), (60, "0123", "other data than asked for (0123, not ")],
)
def test_cells_of_another_study_are_refused(straight, tmp_path, steps, data, said):
    """In one sentence, before anything is trained; a cell of the same study is taken."""
    cells = tmp_path / "cells"
    shutil.copytree(straight[0] / "cells", cells)
    if data is not None:
        rewrite(cells / "fista.s0.safetensors", data=data)
    before = times(cells)
    done = softspike("reproduce", "table1", *FEW, "--steps", steps, "--cells", cells, "-o", tmp_path / "out")
    assert done.code == 2
    assert said in done.sentence
    assert "fista.s0.safetensors was trained with" in done.sentence
    assert times(cells) == before


def test_other_conventions_under_the_same_name_are_refused(straight, tmp_path):
    cells = tmp_path / "cells"
    shutil.copytree(straight[0] / "cells", cells)
    rewrite(cells / "laplacian.scripts.max1.s0.safetensors", conventions="0123")
    done = softspike("reproduce", "table1", *FEW, "--steps", 60, "--cells", cells, "-o", tmp_path / "out")
    assert done.code == 2
    assert "was trained with other conventions than asked for (0123, not " in done.sentence


def test_cells_without_a_record_are_known_only_in_their_own_folder(straight, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(straight[0] / "cells", out / "cells")
    for path in (out / "cells").glob("*.safetensors"):
        rewrite(path, data=None, conventions=None)
    command = ["reproduce", "table1", *FEW, "--train-only", "--steps"]
    elsewhere = softspike(*command, 60, "--cells", out / "cells", "-o", tmp_path / "other")
    assert elsewhere.code == 2
    assert "has no record of its data" in elsewhere.sentence
    assert softspike(*command, 60, "-o", out).code == 0
    shutil.rmtree(tmp_path / "other")
    (out / "config.json").unlink()
    shorter = softspike(*command, 61, "-o", out)
    assert shorter.code == 2
    assert "other steps than asked for (60, not 61)" in shorter.sentence


def rewrite(path, **changes):
    """The file of a trained cell with another record; None takes an entry out."""
    tensors, metadata = read_tensors(path)
    story = {**json.loads(metadata["story"]), **changes}
    kept = {name: value for name, value in story.items() if value is not None or name == "diverged"}
    write_tensors(path, tensors, {"story": json.dumps(kept)})
