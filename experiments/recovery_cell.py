"""One cell of the recovery experiment: train a method on data whose codes are known, measure what it found."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from experiments.recovery_atoms import matched_cosines
from experiments.recovery_problems import problem_named
from softspike import SparseCoder
from softspike.data import TensorRows
from softspike.metric import explained_variance
from softspike.metric.calibration import brier_score, calibration_error, interval_coverage, reliability
from softspike.metric.recovery import Matching, absolute_correlation, dictionary_recovery, match, support_scores

__all__ = ["OURS", "Cell", "complete", "measure"]

OURS = "hard-gaussian"


@dataclass(frozen=True)
class Cell:
    """All that a result depends on, besides the code."""

    problem: str
    method: str
    seed: int
    noise: float
    steps: int
    encoder_steps: int = 5
    refits: int = 200
    asked: float = 1.0  # times as many active components as there are

    @property
    def setting(self) -> str:
        refits = "" if self.refits == 200 else f"-f{self.refits}"
        asked = "" if self.asked == 1 else f"-a{self.asked:g}"
        return f"{self.problem}-n{self.noise:g}-t{self.steps}-k{self.encoder_steps}{refits}{asked}"

    @property
    def name(self) -> str:
        return f"{self.setting}-{self.method}-{self.seed}"


def complete(cell: Cell, folder: Path, device: str) -> dict[str, Any]:
    """The finished cell, from its file or by doing it now; the file appears when all is measured."""
    path = folder / f"{cell.name}.json"
    if path.exists():
        return json.loads(path.read_text())
    began = time.perf_counter()
    problem = problem_named(cell.problem)
    sample = problem.sample(problem.n_train + problem.n_test, cell.seed, cell.noise)
    drawn = time.perf_counter()
    coder = SparseCoder(
        sample.codes.shape[1], n_active=cell.asked * problem.n_active, method=cell.method, positive=problem.positive,
        max_steps=cell.steps, encoder_steps=cell.encoder_steps, dictionary_refits=cell.refits, random_state=cell.seed,
        verbose=False, device=device,
    )  # fmt: skip
    rows = TensorRows(sample.x[: problem.n_train].to(device))
    coder.fit_rows(rows)
    fitted = time.perf_counter()
    found = measure(coder, sample.x[problem.n_train :].numpy(), sample.codes[problem.n_train :], sample.dictionary)
    seconds = {
        "seconds_data": drawn - began,
        "seconds": fitted - drawn,
        "seconds_measure": time.perf_counter() - fitted,
    }
    unused = int((coder.inference_.codes(rows).getnnz(0) == 0).sum())  # never active on the whole training set
    times = {name: round(value, 1) for name, value in seconds.items()}
    result = {"device": device, **times, "dead_training": unused, **found}
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(result))
    draft.rename(path)
    return result


def measure(coder: SparseCoder, test: np.ndarray, truth: Tensor, dictionary: Tensor) -> dict[str, Any]:
    """Components are matched with sources once, by the correlation of their codes, for everything but the atoms."""
    sparse, std = coder.transform(test, return_std=True) if coder.method == OURS else (coder.transform(test), None)
    codes = torch.from_numpy(sparse.toarray())
    similarity = absolute_correlation(codes, truth)
    pairs = match(similarity)
    learned = torch.from_numpy(coder.components_.T)
    atoms = dictionary_recovery(learned, dictionary)
    cosines = matched_cosines(learned, dictionary, (truth != 0).double().mean(0))
    support = support_scores(codes, truth, pairs)
    every = torch.from_numpy(coder.activation_probability(test))
    probability = every[:, pairs.found]
    happened = (truth != 0)[:, pairs.truth]
    doubtful = probability > 0.01
    bins = reliability(probability, happened)
    spread = {} if std is None else coverage(coder.components_, codes, torch.from_numpy(std), truth, dictionary, pairs)
    return {
        "correlation": float(similarity[pairs].sum()) / truth.shape[1],
        "explained_variance": explained_variance(
            torch.from_numpy(test), torch.from_numpy(coder.inverse_transform(sparse))
        ),
        "active": float((codes != 0).sum(-1).double().mean()),
        "active_expected": float(every.double().sum(-1).mean()),
        "dead": int((codes == 0).all(0).sum()),
        "atoms_cosine": atoms.cosine,
        "atoms_share": atoms.share,
        "cosines": {"sources": truth.shape[1], "percent": cosines.mul(100).round().int().tolist()},
        "precision": support.precision,
        "recall": support.recall,
        "f1": support.f1,
        "ece": calibration_error(probability, happened),
        "ece_above_0.01": calibration_error(probability[doubtful], happened[doubtful]),
        "brier": brier_score(probability, happened),
        "reliability": [[None if v != v else round(v, 5) for v in column.tolist()] for column in bins],
        **spread,
    }


def coverage(
    components: np.ndarray, code: Tensor, spread: Tensor, truth: Tensor, dictionary: Tensor, pairs: Matching
) -> dict[str, float]:
    """Of 90 % intervals, in units of the true codes: atoms of any length and sign are scaled to the true ones."""
    atoms = torch.from_numpy(components.T)[:, pairs.found]
    overlap, length = (atoms * dictionary[:, pairs.truth]).sum(0), atoms.norm(dim=0)
    unit, cosine = length * overlap.sign(), overlap.abs() / length.clamp_min(1e-12)
    code, spread, truth = code[:, pairs.found] * unit, spread[:, pairs.found] * unit.abs(), truth[:, pairs.truth]
    active, real = code != 0, truth != 0
    groups = {
        "active": active,
        "active_found": active & (cosine > 0.9),  # of sources whose atom was found: others have no true coefficient
        "active_and_true": active & real,
        "true": real,
        "all": torch.ones_like(active),
    }
    return {f"coverage_{name}": interval_coverage(code[g], spread[g], truth[g]) for name, g in groups.items()}
