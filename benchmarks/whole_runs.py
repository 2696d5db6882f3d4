"""Whole trainings on a GPU: losses of plain and fused ones, FISTA dictionaries, several starts, the paper's Table 1."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softspike import SparseCoder
from softspike.data import TensorRows
from softspike.data.olshausen import olshausen_patches
from softspike.files import read_tensors
from softspike.methods.published import PUBLISHED, SCRIPTS, Study, build_published
from softspike.objective import BestOf
from softspike.train import train_in_turn, train_replicas
from softspike.train.fused import train_fused

__all__ = ["fista_whole", "quality", "starts", "table1"]

VARIATIONAL = [name for name in PUBLISHED if name != "fista"]


def patches(path: Path | None, n_train: int) -> Tensor:
    assert path is not None, "needs --olshausen, the path of the whitened images"
    return torch.from_numpy(olshausen_patches(path, n_train=n_train, n_valid=1000).train)


# Where codes are dense and have Laplace tails, a compressed schedule diverges, plain and fused: of 4,000 steps always,
# of 24,000 in one of six runs. So that one is trained by the paper's own. The penalty of FISTA takes 9,000 to rise.
LENGTHS = {"laplacian": 240_000, "fista": 12_000}


def trained_loss(job: tuple[str, int, int, bool, Tensor, str]) -> float | None:
    """The mean training loss (misfit + β·KL + penalties of A) at the end of one model; None where it diverged."""
    method, seed, n_steps, fused, data, device = job
    torch.set_num_threads(1)
    coder, recipe = build_published(PUBLISHED[method], Study(n_steps=n_steps), SCRIPTS, BestOf(20), seed)
    rows = TensorRows(data.to(device))
    engine = train_fused if fused else train_in_turn
    [diverged] = train_replicas([coder], rows, recipe, seeds=[seed], device=device, engine=engine)
    if diverged is not None:
        return None
    generator = torch.Generator(device).manual_seed(0)
    with torch.no_grad():
        return statistics.mean(float(coder.loss(x, n_steps, generator).total) for x in rows.tensor.split(1000))


def quality(path: Path | None, n_steps: int = 4000, seeds: int = 3, workers: int = 12) -> list[dict[str, Any]]:
    """Losses of plain and fused training side by side, seed by seed."""
    data = patches(path, 20_000)
    lengths = {method: max(n_steps, LENGTHS.get(method, 0)) for method in PUBLISHED}
    ways = [(method, fused) for method in PUBLISHED for fused in (False, True)]
    jobs = [(method, seed, lengths[method], fused, data, "cuda") for method, fused in ways for seed in range(seeds)]
    with get_context("spawn").Pool(workers) as pool:
        losses = pool.map(trained_loss, jobs, chunksize=1)
    rows = []
    for number, method in enumerate(PUBLISHED):
        part = losses[number * 2 * seeds : (number + 1) * 2 * seeds]
        rows.append({"method": method, "steps": lengths[method], "plain": part[:seeds], "fused": part[seeds:]})
    return rows


def fista_whole(path: Path | None, device: str = "cuda", study: Study = Study()) -> dict[str, Any]:
    """Seconds of three FISTA dictionaries trained together from start to end, as the paper does; compilation included.

    Without the images on random data, at another penalty: to see that it works, not to time it.
    """
    data = torch.randn(80_000, study.n_features) if path is None else patches(path, 80_000)
    built = [build_published(PUBLISHED["fista"], study, SCRIPTS, seed=seed) for seed in range(3)]
    for coder, _ in built if path is None else ():
        coder.penalty.fill_(5.0)  # type: ignore[operator]
    start = time.perf_counter()
    ends = train_replicas(
        [b.coder for b in built], TensorRows(data), built[0].recipe, seeds=[0, 1, 2], device=device, engine=train_fused
    )
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    diverged = sum(end is not None for end in ends)
    where = "random" if path is None else "Olshausen–Field patches"
    return {"data": where, "dictionaries": 3, "steps": study.n_steps, "seconds": seconds, "diverged": diverged}


def starts(n_rows: int = 20_000, device: str = "cuda", **changes: Any) -> dict[str, Any]:
    """Seconds of `SparseCoder.fit` with one start, which loads everything, with one again, and with four together."""
    x = np.random.default_rng(0).standard_normal((n_rows, 64), dtype=np.float32)
    took: dict[str, Any] = {"rows": n_rows, "features": 64, "components": 128}
    for name, n_init in (("one_first", 1), ("one", 1), ("four", 4)):
        coder = SparseCoder(128, n_init=n_init, device=device, random_state=0, verbose=False, **changes)
        begun = time.perf_counter()
        coder.fit(x)
        took[name] = time.perf_counter() - begun
    return took


def table1(path: Path | None, device: str = "cuda", *further: str) -> dict[str, Any]:
    """Seconds of the command that trains the variational part of Table 1, and of each group of runs in it."""
    assert path is not None or "--quick" in further, "needs --olshausen, the path of the whitened images"
    data = [] if path is None else ["--data", str(path)]
    words = ["reproduce", "table1", "--device", device, "--conventions", "scripts", "--methods", ",".join(VARIATIONAL)]
    words += ["--train-only", *further]
    with tempfile.TemporaryDirectory() as folder:
        out, begun = Path(folder) / "table1", time.perf_counter()
        subprocess.run([sys.executable, "-m", "softspike", *words, *data, "-o", str(out)], check=True)
        seconds, files = time.perf_counter() - begun, sorted((out / "cells").glob("*.safetensors"))
        stories = {file.stem: json.loads(read_tensors(file)[1]["story"]) for file in files}
    groups: dict[float, dict[str, Any]] = {}
    for name, story in stories.items():
        group = groups.setdefault(story["seconds"], {"runs": 0, "methods": [], "seconds": story["seconds"]})
        group["runs"] += 1
        group["methods"] = sorted({*group["methods"], name.split(".")[0]})
    first = next(iter(stories.values()))
    return {
        "command": first["command"], "commit": first["commit"], "runs": len(stories), "steps": first["steps"],
        "seconds": seconds, "groups": list(groups.values()),
    }  # fmt: skip
