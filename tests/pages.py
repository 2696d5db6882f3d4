"""Runs and pages of every kind for the tests of the report, made by the commands themselves."""

import json
import shutil
from pathlib import Path

import numpy as np
from command import softspike

from softspike.data import synthetic

N_ROWS = 700
TRAIN = ["--steps", 60, "--batch", 32, "--checkpoint-every", 40]

# name → shape of a sample, atoms, further words
KINDS = {
    "grey": ((8, 8), 48, []),
    "again": ((8, 8), 40, ["--seed", 1]),
    "colour": ((4, 5, 3), 24, []),
    "bars": ((20,), 30, []),
    "guessed": ((16,), 24, []),
    "topk": ((8, 8), 32, ["--method", "topk"]),
    "dense": ((8, 8), 32, ["--method", "gaussian", "--samples", 2]),
}


def rows(shape: tuple[int, ...], n: int = N_ROWS, seed: int = 0) -> np.ndarray:
    """Sparse mixtures with a mean that is not 0."""
    width = int(np.prod(shape))
    return (0.5 + synthetic(n, width, 2 * width, 4, seed, noise=0.05, positive=False).x.numpy()).reshape(n, *shape)


def trained(folder: Path, kind: str) -> Path:
    """A run of that kind in a folder, and the data beside it."""
    shape, n_atoms, words = KINDS[kind]
    np.save(folder / f"{kind}.npy", rows(shape))
    made = softspike(
        "train", f"{kind}.npy", "-o", kind, "--components", n_atoms, "--active", 4, *TRAIN, *words, folder=folder
    )
    assert made.code == 0, made.err
    return folder / kind


def reported(folder: Path, *words: object) -> Path:
    """The page that a report command wrote."""
    made = softspike("report", *words, folder=folder)
    assert made.code == 0, made.err
    return folder / made.out.split()[1]


def stopped(run: Path) -> Path:
    """As a run that was stopped at step 40 is left behind."""
    other = run.with_name(f"{run.name}-stopped")
    shutil.copytree(run, other)
    for name in ("model.safetensors", "summary.json", "dictionary.png"):
        (other / name).unlink()
    (other / "checkpoints/step-000000060.safetensors").unlink()
    return other


def diverged(folder: Path, run: Path) -> Path:
    """A run whose learning rate was too high, without a checkpoint."""
    words = ["train", f"{run.name}.npy", "-o", "diverged", "--rate", 1e6, "--components", 48, "--steps", 2000]
    assert softspike(*words, folder=folder).code == 1
    return folder / "diverged"


def bench(folder: Path) -> Path:
    """All of these in one folder."""
    for kind in KINDS:
        trained(folder, kind)
    stopped(folder / "grey")
    diverged(folder, folder / "grey")
    return folder


def all_pages(folder: Path) -> dict[str, Path]:
    """A page of each, one of several runs, and one of a run whose data is gone."""
    found = {kind: reported(folder, kind) for kind in KINDS}
    found["stopped"], found["diverged"] = reported(folder, "grey-stopped"), reported(folder, "diverged")
    found["several"] = reported(folder, "grey", "again", "bars", "diverged", "-o", "several.html")
    (folder / "grey.npy").rename(folder / "moved.npy")
    found["without data"] = reported(folder, "grey", "-o", "bare.html")
    (folder / "moved.npy").rename(folder / "grey.npy")
    return found


def data_of(page: Path) -> dict:
    """The JSON inside a page."""
    text = page.read_text(encoding="utf-8")
    start = text.index(">", text.index('id="softspike-data"')) + 1
    return json.loads(text[start : text.index("</script>", start)])
