"""Control characters in files, labels and folders' names are shown as escapes, never sent to the terminal."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from command import softspike
from small import small_data

from softspike.visible import visible

EVIL = "\x1b[31m\x9b2J\x07\u202e"
SHOWN = r"\x1b[31m\x9b2J\x07\u202e"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A run whose files and folder all try to speak to the terminal."""
    folder = tmp_path_factory.mktemp("evil")
    table = pd.DataFrame(small_data(64)).rename(columns=str)
    table[EVIL] = np.arange(64) % 2 == 0
    table.to_parquet(folder / "x.parquet")
    pd.DataFrame({EVIL: ["a", "b"]}).to_parquet(folder / "words.parquet")
    np.savez(folder / "two.npz", **{f"a{EVIL}": small_data(8), "b": small_data(8)})
    np.save(folder / "data.npy", small_data(64))
    assert softspike("train", "x.parquet", "-o", "run", "--steps", 2, folder=folder).code == 0
    (folder / "c.json").write_text(json.dumps({f"n{EVIL}": 1}))
    (folder / "m.json").write_text(json.dumps({"method": EVIL}))
    told = folder / f"told{EVIL}"
    shutil.copytree(folder / "run", told)
    config = json.loads((told / "config.json").read_text())
    (told / "config.json").write_text(json.dumps({**config, "data": {"name": f"/data/{EVIL}"}}))
    (told / "diverged.json").write_text(json.dumps({"step": 1, "cause": EVIL}))
    summary = json.loads((told / "summary.json").read_text())
    (told / "summary.json").write_text(json.dumps({**summary, "on": EVIL}))
    return folder


WORDS = [
    ["runs"], ["show", f"told{EVIL}"], ["report", f"told{EVIL}", "-o", "page.html"], ["inspect", "run", "x.parquet"],
    ["train", "words.parquet", "-o", "new"], ["train", "two.npz", "-o", "new"],
    ["train", "data.npy", "-o", "new", "--config", "c.json"], ["train", "data.npy", "-o", "new", "--config", "m.json"],
    ["encode", f"told{EVIL}", "x.parquet", "-o", "new", "--key", "none"],
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0])
def test_nothing_but_text_reaches_the_terminal(bench, words):
    done = softspike(*words, folder=bench)
    said = done.out + done.err
    assert all(line.isprintable() for line in said.split("\n")), said
    assert SHOWN in said or words[-1] == "none"
    assert not (bench / "new").exists()


@pytest.mark.parametrize("text", ["", "plain – ½‖x‖²", "\udc80", "\0", "tab\t", "😀", "\u2028"])
def test_printable_text_stays_as_it_is(text):
    assert visible(text).isprintable()
    assert (visible(text) == text) == text.isprintable()
