"""The softspike command: every command on every format, its help, its prints, its start-up."""

import io
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import typer
from command import softspike
from PIL import Image
from safetensors.numpy import save_file
from scipy import sparse
from scipy.io import savemat
from small import small_data

from softspike import SparseCoder
from softspike.cli import app

X = small_data(160, n_features=16)
QUICK = ["--steps", 4, "--components", 20, "--active", 3, "--batch", 32]
TRAINED = {"config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "summary.json", "dictionary.png"}


def write_images(folder):
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (160, 4, 4), dtype=np.uint8)
    for number, image in enumerate(pixels):
        Image.fromarray(image).save(folder / f"{number:03d}.png")


def write_shards(folder):
    folder.mkdir()
    for number, part in enumerate(np.array_split(X, 3)):
        np.save(folder / f"{number}.npy", part)


def write_encoded_images(path):
    images = [Image.fromarray((255 * np.random.default_rng(i).random((4, 4))).astype(np.uint8)) for i in range(160)]
    buffers = [io.BytesIO() for _ in images]
    for image, buffer in zip(images, buffers, strict=True):
        image.save(buffer, "PNG")
    pd.DataFrame({"image": [buffer.getvalue() for buffer in buffers]}).to_parquet(path)


# name → how to write it, and what the command needs besides the name
FORMATS = {
    "x.npy": (lambda path: np.save(path, X), []),
    "images.npy": (lambda path: np.save(path, X.reshape(160, 4, 4).astype(np.float64)), []),
    "volumes.npy": (lambda path: np.save(path, X.reshape(160, 2, 2, 4)), []),  # no picture has four channels
    "x.npz": (lambda path: np.savez(path, x=X, y=np.zeros(3)), ["--key", "x"]),
    "x.mat": (lambda path: savemat(path, {"X": X}), []),
    "x.safetensors": (lambda path: save_file({"x": X}, path), []),
    "x.parquet": (lambda path: pd.DataFrame(X, columns=[f"f{i}" for i in range(16)]).to_parquet(path), []),
    "encoded.parquet": (write_encoded_images, []),
    "images": (write_images, []),
    "shards": (write_shards, []),
}


@pytest.mark.parametrize("name", FORMATS)
def test_train_encode_and_evaluate(tmp_path, name):
    write, extra = FORMATS[name]
    write(tmp_path / name)
    trained = softspike("train", name, "-o", "run", *QUICK, *extra, folder=tmp_path)
    assert trained.code == 0, trained.err
    check_run(tmp_path / "run", n_components=20)
    assert_plain(trained)
    assert re.search(r"^step 4/4  loss -?\d", trained.err, re.MULTILINE)
    assert "explained variance: " in trained.out

    encoded = softspike("encode", "run", name, "-o", "new/codes.npz", *extra, folder=tmp_path)
    assert encoded.code == 0, encoded.err
    codes = sparse.load_npz(tmp_path / "new/codes.npz")
    assert codes.format == "csr"
    assert codes.shape == (160, 20)
    assert (codes.data != 0).all()
    assert f"{codes.nnz / 160:.2f} active each" in encoded.out

    evaluated = softspike("evaluate", "run", name, *extra, folder=tmp_path)
    assert evaluated.code == 0, evaluated.err
    assert_plain(evaluated)
    for line in ("explained variance", "active components", "dead components", "OMP", "principal components"):
        assert line in evaluated.out


def check_run(run, n_components, more=frozenset()):
    assert {path.name for path in run.iterdir()} - {".lock"} == TRAINED | more
    summary = json.loads((run / "summary.json").read_text(), parse_constant=pytest.fail)
    assert summary["n_components"] == n_components
    assert all(np.isfinite(value) for value in summary.values() if isinstance(value, float))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == sorted({line["step"] for line in lines})
    assert lines[-1]["step"] == json.loads((run / "config.json").read_text())["n_steps"]
    with Image.open(run / "dictionary.png") as picture:
        assert min(picture.size) > 100
        assert len(picture.getcolors(2**20)) > 2


def assert_plain(outcome):
    """No escapes, no bars, no frames: lines that a log can hold."""
    assert not re.search(r"[\x1b\r│╭━]", outcome.out + outcome.err)


def test_the_codes_are_those_of_the_estimator(tmp_path):
    np.save(tmp_path / "x.npy", X)
    assert softspike("train", "x.npy", "-o", "run", *QUICK, "--seed", 3, folder=tmp_path).code == 0
    assert softspike("encode", "run", "x.npy", "-o", "codes.npz", folder=tmp_path).code == 0
    same = SparseCoder(20, n_active=3, max_steps=4, batch_size=32, random_state=3).fit(X)
    codes = sparse.load_npz(tmp_path / "codes.npz")
    assert codes.data.tobytes() == same.transform(X).data.tobytes()
    loaded = SparseCoder.load(tmp_path / "run")
    assert loaded.components_.tobytes() == same.components_.tobytes()


def test_a_single_row_can_be_encoded_and_evaluated(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "one.npy", X[:1])
    assert softspike("train", "x.npy", "-o", "run", *QUICK, folder=tmp_path).code == 0
    assert softspike("encode", "run", "one.npy", "-o", "codes.npz", folder=tmp_path).code == 0
    outcome = softspike("evaluate", "run", "one.npy", folder=tmp_path)
    assert outcome.code == 0, outcome.err


def test_options_override_the_configuration_file(tmp_path):
    np.save(tmp_path / "x.npy", X)
    config = {"n_components": 18, "sparsity": 0.2, "max_steps": 3, "method": "fista", "constant_features": "keep"}
    (tmp_path / "c.json").write_text(json.dumps(config))
    words = ["train", "x.npy", "-o", "run", "--config", "c.json", "--components", 22, "--seed", 5]
    assert softspike(*words, folder=tmp_path).code == 0
    stored = json.loads((tmp_path / "run/config.json").read_text())["estimator"]
    assert {**stored, **config, "n_components": 22, "random_state": 5} == stored


def test_several_starts_are_refused_before_a_folder_is_made(tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "c.json").write_text('{"n_init": 2, "max_steps": 3}')
    outcome = softspike("train", "x.npy", "-o", "run", "--config", "c.json", folder=tmp_path)
    assert outcome.code == 2
    assert outcome.sentence.startswith("softspike: n_init is 2, expected 1: this command trains one start")
    assert not (tmp_path / "run").exists()
    assert softspike("train", "x.npy", "-o", "run", "--steps", 3, folder=tmp_path).code == 0


FEWER_PATCHES = """
import runpy
from dataclasses import replace
from softspike.command import source
from softspike.fitting import placing
cut, refit = source.photograph_patches, placing.refit_dictionary
source.photograph_patches = lambda n_train, n_valid, **options: cut(n_train // 160, n_valid // 40, **options)
placing.refit_dictionary = lambda coder, plan, *given: refit(coder, replace(plan, dictionary_refits=1), *given)
runpy.run_module("softspike", run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_demo(tmp_path):
    """As a user starts it: in a process of its own, with nothing given but a length; few patches, one refit."""
    words = [sys.executable, "-c", FEWER_PATCHES, "demo", "--steps", "3"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=alone)
    assert done.returncode == 0, done.stderr
    check_run(tmp_path / "run/demo", n_components=256, more={"report.html"})
    assert not re.search(r"[\x1b\r│╭━]", done.stdout + done.stderr)
    assert "wrote run/demo/model.safetensors" in done.stdout


# ── help and start-up ──


def commands(group, prefix=()):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))
        else:
            yield (*prefix, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_the_commands_of_the_design():
    assert {("demo",), ("train",), ("encode",), ("evaluate",), ("report",), ("runs",), ("show",)} <= COMMANDS.keys()
    assert ("data", "olshausen") in COMMANDS


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_complete(words):
    command = COMMANDS[words]
    outcome = softspike(*words, "--help")
    assert outcome.code == 0
    assert command.help.splitlines()[0] in " ".join(outcome.out.split())
    for parameter in command.params:
        assert parameter.help, f"{parameter.name} has no help"
        shown = [option for option in parameter.opts if option.startswith("--")] or [parameter.name]
        assert shown[0] in outcome.out
        told = re.sub(r"[\s│]+", " ", outcome.out)
        assert " ".join(parameter.help.split()) in told, f"the help of {parameter.name} is cut or eaten by markup"


def test_the_defaults_told_are_the_estimators():
    defaults = SparseCoder().get_params()
    names = {"steps": "max_steps", "samples": "n_samples", "batch": "batch_size", "sparsity": "sparsity"}
    for parameter in COMMANDS[("train",)].params:
        told = re.search(r"\(default: ([\d.]+)\)", getattr(parameter, "help", "") or "")
        if told and parameter.name in names:
            assert float(told[1]) == defaults[names.pop(parameter.name)]
    assert not names


def test_no_arguments_show_the_help():
    assert "Usage" in softspike().out + softspike().err
    assert softspike("--version").out.startswith("softspike ")


def test_help_comes_quickly():
    """Under half a second at best of five, as nothing heavy is imported."""
    script = "import sys; from softspike.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass\n"
    script += "sys.exit(bool({'torch', 'numpy', 'scipy', 'sklearn', 'matplotlib'} & sys.modules.keys()))"
    best = np.inf
    for _ in range(5):
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        best = min(best, time.perf_counter() - begun)
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout
    assert best < 0.5


# ── data olshausen ──


def test_olshausen_explains_and_refuses_another_file(tmp_path):
    np.save(tmp_path / "other.npy", np.random.default_rng(0).standard_normal((10, 512, 512)).astype(np.float32))
    outcome = softspike("data", "olshausen", "other.npy", folder=tmp_path)
    assert outcome.code == 2
    assert "IMAGES.mat" in outcome.out
    assert "is not the whitened set" in outcome.sentence


def test_interrupted_before_anything_is_written_gives_no_hint_to_resume(tmp_path, monkeypatch, capsys):
    import softspike.command.jobs

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(softspike.command.jobs, "train_job", interrupt)
    with pytest.raises(SystemExit) as end:
        app(["train", "x.npy", "-o", str(tmp_path / "run")])
    assert end.value.code == 130
    assert capsys.readouterr().err == "softspike: interrupted\n"
