"""Links, pipes, devices and folders in the place of files: one sentence each, and nothing behind them is touched."""

import os
import shutil

import numpy as np
import pytest
from command import softspike
from small import small_data

from softspike.run import RunFolder, RunWarning

WORDS = ["train", "data.npy", "--method", "topk", "--steps", 4, "--checkpoint-every", 2, "--log", "csv"]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    np.save(folder / "data.npy", small_data(64))
    assert softspike(*WORDS, "-o", "run", folder=folder).code == 0
    return folder


@pytest.fixture
def place(bench, tmp_path):
    """A run of its own to spoil, and something beside it that must not change."""
    shutil.copytree(bench / "run", tmp_path / "run")
    shutil.copy(bench / "data.npy", tmp_path)
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "elsewhere").mkdir()
    for name in (".step-1.tmp", "step-000000001.safetensors"):
        (tmp_path / "elsewhere" / name).write_text("precious")
    return tmp_path


def replaced(path, by):
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    path.symlink_to(by)


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl", "metrics.csv", "checkpoints"])
def test_a_link_in_a_run_folder_is_not_written_through(place, name):
    replaced(place / "run" / name, place / ("elsewhere" if name == "checkpoints" else "precious"))
    (place / "run/model.safetensors").unlink()
    if name == "metrics.jsonl":  # it is read, and written again without the link, unless it grows
        with pytest.raises(ValueError, match=r"metrics\.jsonl is a symbolic link, expected a regular file; remove it"):
            RunFolder(place / "run").append_metrics({"step": 5})
    else:
        outcome = softspike("train", "data.npy", "-o", "run", "--resume", "--log", "csv", folder=place)
        assert outcome.code == 2
        assert f"run/{name} is a symbolic link, expected a " in outcome.sentence
    assert (place / "precious").read_text() == "precious"
    assert {path.name for path in (place / "elsewhere").iterdir()} == {".step-1.tmp", "step-000000001.safetensors"}


def test_what_is_written_whole_replaces_a_link(place):
    for name in ("dictionary.png", "summary.json", "model.safetensors"):
        replaced(place / "run" / name, place / "precious")
    (place / "run/model.safetensors").unlink()
    assert softspike("train", "data.npy", "-o", "run", "--resume", folder=place).code == 0
    assert (place / "precious").read_text() == "precious"
    assert not (place / "run/dictionary.png").is_symlink()


def test_a_lock_is_never_emptied(place):
    (place / "run/.lock").write_text("precious")
    RunFolder(place / "run").lock().unlock()
    assert (place / "run/.lock").read_text() == "precious"


def test_a_temporary_name_that_is_taken_is_not_followed(place):
    (place / f"run/.summary.json.{os.getpid()}.tmp").symlink_to(place / "precious")
    RunFolder(place / "run").write_json("summary.json", {})
    assert (place / "precious").read_text() == "precious"
    assert RunFolder(place / "run").read_json("summary.json") == {}


def pipe(path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def zeros(path):
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


KINDS = {"pipe": pipe, "device": zeros, "folder": folder}
READ = [
    ("x.npy", "train x.npy -o new"), ("x.npz", "train x.npz -o new"), ("x.mat", "train x.mat -o new"),
    ("x.safetensors", "train x.safetensors -o new"), ("x.parquet", "train x.parquet -o new"),
    ("x-idx3-ubyte", "train x-idx3-ubyte -o new"), ("x.gz", "train x.gz -o new"),
    ("c.json", "train data.npy -o new --config c.json"), ("run/config.json", "show run"),
    ("run/metrics.jsonl", "show run"), ("run/summary.json", "show run"),
    ("run/model.safetensors", "encode run data.npy -o codes.npz"),
    ("run/checkpoints/step-000000004.safetensors", "train data.npy -o run --resume"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "words"), READ)
def test_what_is_no_file_is_not_read(place, name, words, kind):
    """None of them waits, none of them reads without end."""
    KINDS[kind](place / name)
    outcome = softspike(*words.split(), folder=place)
    if name == "run/summary.json" or "checkpoints" in name:  # done without, but nothing can be written over a folder
        assert outcome.code == (1 if "checkpoints" in name and kind == "folder" else 0)
        return
    assert outcome.code == 2
    said = (f"is a {kind}", "neither .npy shards", "it has no config.json")
    assert any(words in outcome.sentence for words in said)
    assert not (place / "new").exists()


def test_the_warning_says_where_training_starts(place):
    run = RunFolder(place / "run")
    for path in run.checkpoints():
        os.truncate(path, 20)
    with pytest.warns(RunWarning, match=r"step-000000004.* is damaged .*; .* training starts again from step 0$"):
        assert run.last_checkpoint() is None
