"""Ground truth: how much of a known dictionary, of known codes and of known supports is found.

    python -m experiments.recovery a|b|c [--seeds 5] [--noise 0.0] [--steps N] --out FOLDER [--plot]

(a) 16 sources in 8 dimensions and (b) 64 in 32, 3 active, 1,024 rows to learn from and 1,024 to test, no noise;
(c) 1,024 sources in 128 dimensions with power-law activity and correlated pairs, 10 active on average, 50,000 rows.
On the support codes are |N(0, 1)|, so every method is asked for non-negative codes. Nothing is tuned per seed or per
method: n_active is the true mean count, the rest as in `PROBLEMS`. A finished cell is kept as JSON and not run again.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softspike import SparseCoder
from softspike.data import SparseSample, power_law_synthetic, synthetic
from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability
from softspike.metric.recovery import absolute_correlation, dictionary_recovery, match, support_scores

OURS = "hard-gaussian"
RIVALS = ("topk", "batchtopk", "jumprelu", "fista")


@dataclass(frozen=True)
class Problem:
    sample: Callable[[int, int, float], SparseSample]  # rows, seed, noise
    n_train: int
    n_test: int
    n_active: float
    steps: int
    bar: float | None  # mean correlation of matched latents to reach
    known: str  # what is known of others


PROBLEMS = {
    "a": Problem(
        lambda n, seed, noise: synthetic(n, 8, 16, 3, seed, noise), 1024, 1024, 3, 4000, 0.691,
        "sparse coding .691, MLP .643, plain autoencoder .566",
    ),
    "b": Problem(
        lambda n, seed, noise: synthetic(n, 32, 64, 3, seed, noise), 1024, 1024, 3, 4000, 0.918,
        "bar .918, plain autoencoder .547",
    ),
    "wide": Problem(
        lambda n, seed, noise: synthetic(n, 64, 256, 6, seed, noise), 16_384, 2048, 6, 4000, None, "calibration only"
    ),
    "c": Problem(
        lambda n, seed, noise: power_law_synthetic(n, 10, seed, noise=noise), 50_000, 4096, 10, 2000, None,
        "no published figure",
    ),
}  # fmt: skip


def cell(problem: Problem, method: str, seed: int, noise: float, steps: int, encoder_steps: int) -> dict[str, Any]:
    """Train one method on one seed and measure it on the rows it has not seen."""
    sample = problem.sample(problem.n_train + problem.n_test, seed, noise)
    train, test = (part.numpy() for part in (sample.x[: problem.n_train], sample.x[problem.n_train :]))
    coder = SparseCoder(
        sample.codes.shape[1], n_active=problem.n_active, method=method, positive=True, max_steps=steps,
        encoder_steps=encoder_steps, random_state=seed, verbose=False, device="cpu",
    )  # fmt: skip
    began = time.perf_counter()
    coder.fit(train)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 1), **measure(coder, test, sample.codes[problem.n_train :], sample.dictionary)}


def measure(coder: SparseCoder, test: np.ndarray, truth: Tensor, dictionary: Tensor) -> dict[str, Any]:
    """Components are matched with sources once, by the correlation of their codes, for everything but the atoms."""
    codes = torch.from_numpy(coder.transform(test).toarray())
    similarity = absolute_correlation(codes, truth)
    pairs = match(similarity)
    atoms = dictionary_recovery(torch.from_numpy(coder.components_.T), dictionary)
    support = support_scores(codes, truth, pairs)
    probability = torch.from_numpy(coder.activation_probability(test))[:, pairs.found]
    happened = (truth != 0)[:, pairs.truth]
    doubtful = probability > 0.01
    bins = reliability(probability, happened)
    return {
        "correlation": float(similarity[pairs].sum()) / truth.shape[1],
        "explained_variance": coder.score(test),
        "active": float((codes != 0).sum(-1).double().mean()),
        "dead": int((codes == 0).all(0).sum()),
        "atoms_cosine": atoms.cosine,
        "atoms_share": atoms.share,
        "precision": support.precision,
        "recall": support.recall,
        "f1": support.f1,
        "ece": calibration_error(probability, happened),
        "ece_above_0.01": calibration_error(probability[doubtful], happened[doubtful]),
        "brier": brier_score(probability, happened),
        "reliability": [[None if v != v else round(v, 5) for v in column.tolist()] for column in bins],
        **(coverage(coder, test, truth, dictionary) if coder.method == OURS else {}),
    }


def coverage(coder: SparseCoder, test: np.ndarray, truth: Tensor, dictionary: Tensor) -> dict[str, float]:
    """Of 90 % intervals, in units of the true codes: atoms of any length and sign are scaled to the true ones."""
    codes, std = coder.transform(test, return_std=True)
    code, spread = torch.from_numpy(codes.toarray()), torch.from_numpy(std)
    pairs = match(absolute_correlation(code, truth))
    atoms = torch.from_numpy(coder.components_.T)[:, pairs.found]
    unit = atoms.norm(dim=0) * (atoms * dictionary[:, pairs.truth]).sum(0).sign()
    code, spread, truth = code[:, pairs.found] * unit, spread[:, pairs.found] * unit.abs(), truth[:, pairs.truth]
    cosine = (atoms * dictionary[:, pairs.truth]).sum(0).abs() / atoms.norm(dim=0).clamp_min(1e-12)
    active, real = code != 0, truth != 0
    groups = {
        "active": active,
        "active_found": active & (cosine > 0.9),  # of sources whose atom was found: others have no true coefficient
        "active_and_true": active & real,
        "true": real,
        "all": torch.ones_like(active),
    }
    return {f"coverage_{name}": interval_coverage(code[g], spread[g], truth[g]) for name, g in groups.items()}


def summarise(cells: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Mean and standard deviation over seeds of every figure, by method."""
    table: dict[str, Any] = {}
    for method, rows in cells.items():
        names = [name for name, value in rows[0].items() if isinstance(value, float | int)]
        values = {name: [row[name] for row in rows] for name in names}
        table[method] = {name: [float(np.mean(v)), float(np.std(v))] for name, v in values.items()}
        table[method]["correlation_by_seed"] = values["correlation"]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--steps", type=int, help="training steps, for every method")
    parser.add_argument("--encoder-steps", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=[OURS, *RIVALS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", action="store_true", help="also write the reliability diagram")
    options = parser.parse_args()
    problem = PROBLEMS[options.problem]
    steps = options.steps or problem.steps
    name = f"{options.problem}-n{options.noise:g}-t{steps}-k{options.encoder_steps}"
    cells: dict[str, list[dict[str, Any]]] = {}
    for seed in range(options.seeds):
        for method in options.methods:
            path = options.out / "cells" / f"{name}-{method}-{seed}.json"
            if not path.exists():
                result = cell(problem, method, seed, options.noise, steps, options.encoder_steps)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(result))
            cells.setdefault(method, []).append(json.loads(path.read_text()))
            shown = {name: round(v, 4) for name, v in cells[method][-1].items() if name != "reliability"}
            print(method, seed, shown, flush=True)
    settings = {"steps": steps, "encoder_steps": options.encoder_steps, "noise": options.noise, "seeds": options.seeds}
    page = {"problem": options.problem, "known": problem.known, "bar": problem.bar, **settings}
    target = options.out / f"recovery_{name}.json"
    target.write_text(json.dumps({**page, "methods": summarise(cells)}, indent=1))
    if options.plot:
        from experiments.recovery_plot import plot

        plot(cells, problem.known, target.with_suffix(".png"))


if __name__ == "__main__":
    main()
