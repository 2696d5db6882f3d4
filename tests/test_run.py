"""The run folder: files appear whole or not at all, damage is noticed, and one process at a time owns it."""

import json
import os
import subprocess
import sys

import pytest
import torch

from softspike.run import FORMAT, RunError, RunFolder, read_tensors, write_atomically, write_tensors

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(float("nan")), "c": torch.zeros(0, 4)}


class Crash(Exception):
    """Stands for the machine going down."""


def crash(*_):
    raise Crash


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_crash_leaves_the_old_file(tmp_path, monkeypatch, moment):
    path = tmp_path / "config.json"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, moment, crash)
    with pytest.raises(Crash):
        write_atomically(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["config.json"]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_crash_while_saving_leaves_the_last_checkpoint(tmp_path, monkeypatch, moment):
    run = RunFolder(tmp_path)
    run.save_checkpoint(1, TENSORS)
    with monkeypatch.context() as patch:
        patch.setattr(os, moment, crash)
        with pytest.raises(Crash):
            run.save_checkpoint(2, TENSORS)
    assert run.last_checkpoint()[0] == 1
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000001.safetensors"]


def test_a_file_is_flushed_before_it_takes_its_name(tmp_path, monkeypatch):
    order, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (order.append("fsync"), fsync(file)))
    monkeypatch.setattr(os, "replace", lambda a, b: (order.append("replace"), replace(a, b)))
    write_tensors(tmp_path / "x.safetensors", TENSORS, {})
    assert order == ["fsync", "replace"]


def test_tensors_come_back_as_they_were(tmp_path):
    write_tensors(tmp_path / "x.safetensors", TENSORS, {"step": "7"})
    tensors, metadata = read_tensors(tmp_path / "x.safetensors")
    assert metadata["step"] == "7"
    assert tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        torch.testing.assert_close(tensors[name], value, rtol=0, atol=0, equal_nan=True)


def test_the_same_tensors_are_the_same_bytes(tmp_path):
    names = [f"{i}.safetensors" for i in range(8)]
    for name in names:
        write_tensors(tmp_path / name, TENSORS, {"step": "7", "more": "metadata"})
    assert len({(tmp_path / name).read_bytes() for name in names}) == 1


def flip_a_bit(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0b100
    path.write_bytes(content)


def change_the_step(path):
    content = path.read_bytes()
    changed = content.replace(rb"\"step\": \"30\"", rb"\"step\": \"70\"").replace(rb"\"20\"", rb"\"60\"")
    assert changed != content
    path.write_bytes(changed)


DAMAGE = {
    "another step in the metadata": change_the_step,
    "a flipped bit in the last tensor": lambda path: flip_a_bit(path, -1),
    "a flipped bit in the first tensor": lambda path: flip_a_bit(path, -28),
    "a flipped bit in the header": lambda path: flip_a_bit(path, 20),
    "a flipped bit in the length": lambda path: flip_a_bit(path, 0),
    "the last byte missing": lambda path: os.truncate(path, path.stat().st_size - 1),
    "half of it": lambda path: os.truncate(path, path.stat().st_size // 2),
    "nothing in it": lambda path: os.truncate(path, 0),
    "noise": lambda path: path.write_bytes(b"\xff" * 300),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed_and_the_checkpoint_before_is_used(tmp_path, damage):
    run = RunFolder(tmp_path)
    for step in (10, 20, 30):
        run.save_checkpoint(step, {**TENSORS, "step": torch.tensor(step)})
    newest, before = run.checkpoints()
    DAMAGE[damage](newest)
    with pytest.raises(RunError, match=r"step-000000030\.safetensors (is damaged|has format)"):
        read_tensors(newest)
    step, tensors = run.last_checkpoint()
    assert step == int(tensors["step"]) == 20
    DAMAGE[damage](before)
    assert run.last_checkpoint() is None


def test_damaged_checkpoints_take_no_place_from_new_ones(tmp_path):
    """Two that are damaged do not outlive what training writes after going on from before them."""
    run = RunFolder(tmp_path)
    for step in (20, 30):
        run.save_checkpoint(step, TENSORS)
    for path in run.checkpoints():
        os.truncate(path, 100)
    for step in (5, 10, 15):
        run.save_checkpoint(step, {**TENSORS, "step": torch.tensor(step)})
    step, tensors = run.last_checkpoint()
    assert step == int(tensors["step"]) == 15
    assert [path.stem for path in run.checkpoints()] == ["step-000000015", "step-000000010"]


def test_metrics_of_steps_done_again_and_a_torn_line_are_dropped(tmp_path):
    run = RunFolder(tmp_path)
    for step in (50, 100, 150):
        run.append_metrics({"step": step, "loss": step / 3})
    with open(tmp_path / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 200, "lo\xff')
    run.drop_metrics_after(100)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert lines == [{"step": 50, "loss": 50 / 3}, {"step": 100, "loss": 100 / 3}]
    run.append_metrics({"step": 150, "loss": 1.0})
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 3


CLAIM = """
import sys
from softspike.run import RunError, RunFolder
try:
    RunFolder(sys.argv[1]).lock()
except RunError as error:
    sys.exit(str(error))
"""


def test_a_second_process_is_refused_while_the_first_lives(tmp_path):
    run = RunFolder(tmp_path).create({})

    def claim():
        return subprocess.run([sys.executable, "-c", CLAIM, str(tmp_path)], capture_output=True, text=True)

    refused = claim()
    assert refused.returncode == 1
    assert "is in use by another process; wait for it or choose another folder" in refused.stderr
    del run
    assert claim().returncode == 0


def test_a_new_run_is_refused_where_one_is(tmp_path):
    RunFolder(tmp_path / "run").create({"softspike": "first"})
    with pytest.raises(RunError, match="already holds a run; continue it with --resume or choose another folder"):
        RunFolder(tmp_path / "run").create({"softspike": "second"})
    assert RunFolder(tmp_path / "run").config()["softspike"] == "first"
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file, expected a folder"):
        RunFolder(tmp_path / "file").create({})


@pytest.mark.parametrize("version", [FORMAT + 1, None, "1"])
def test_another_format_is_named(tmp_path, version):
    run = RunFolder(tmp_path)
    run.write_json("config.json", {"format": version})
    said = rf"has format {version!r}, this version of softspike reads format {FORMAT}; train again, or use the version"
    with pytest.raises(RunError, match=said):
        run.config()


def test_a_folder_of_something_else_holds_no_coder(tmp_path):
    """Studies keep their cells in folders of the same format, with configurations of their own."""
    run = RunFolder(tmp_path)
    run.write_json("config.json", {"format": FORMAT, "data": "d3f04d68e7b7986b"})
    assert run.config()["data"] == "d3f04d68e7b7986b"
    with pytest.raises(RunError, match="holds no coder; give a folder that softspike train wrote"):
        run.coder_config()


TAMPERED = {"estimator": 7, "data": "x", "image_shape": [0.5], "n_features": -1, "n_steps": 1e9, "feature_names": {}}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_configuration_that_nobody_wrote_is_refused(tmp_path, name):
    run = RunFolder(tmp_path)
    run.write_json("config.json", {"format": FORMAT, "estimator": {}, name: TAMPERED[name]})
    with pytest.raises(RunError, match=f"for {name}, which softspike never writes; restore it or train again"):
        run.config()


CONFIGS = {
    "absent": (None, "is not a run folder: it has no config.json"),
    "torn": (b'{"format": 1, "esti', "is not readable as JSON"),
    "not UTF-8": (b'{"format": "\xff"}', "is not readable as JSON"),
    "a list": (b"[1]", "holds a JSON list, expected an object"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_an_unreadable_config_is_one_sentence(tmp_path, case):
    content, said = CONFIGS[case]
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(RunError, match=said):
        RunFolder(tmp_path).config()
