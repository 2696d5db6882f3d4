"""The runs behind runs.json, and what is written down of each."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from small import quick, small_data

from softspike import SparseCoder
from softspike.methods import METHODS

__all__ = ["CASES", "FILE", "figures_of", "stored", "tolerance"]

FILE = Path(__file__).with_name("runs.json")

# Every method, and the settings that lead through other code.
CASES: dict[str, dict[str, Any]] = {
    **{name: {"method": name} for name in METHODS},
    "hard-gaussian, positive": {"positive": True},
    "hard-gaussian, batches of one": {"batch_size": 1},
    "hard-gaussian, deeper": {"encoder_steps": 9},
    "thresholded-laplacian, beta": {"method": "thresholded-laplacian", "beta": 0.1},
    "topk, one per cent": {"method": "topk", "n_active": 1},
    "laplacian, ten samples": {"method": "laplacian", "n_samples": 10},
}
STEPS = 30


class _Last:
    """The loss that training ended with."""

    def logged(self, progress: Any) -> None:
        self.loss = {name: float(value) for name, value in progress.loss._asdict().items()}
        self.gauges = {name: float(value) for name, value in progress.coder.gauges().items()}

    def saved(self, progress: Any) -> None: ...


def figures_of(case: str) -> dict[str, float]:
    """Make the run and measure it: loss by its parts, codes, dictionary, probabilities, on data not learned from."""
    from softspike.data import ArrayRows

    last, unseen = _Last(), small_data(seed=1)
    # One step of the last fit: which of several it keeps is decided by so little that another processor decides it
    # otherwise, and codes are then of another dictionary.
    asked = {"max_steps": STEPS, "dictionary_refits": 1, **CASES[case]}
    coder = quick(**asked).fit_rows(ArrayRows(small_data()), observers=[last])
    codes = coder.transform(unseen)
    found = {
        **last.loss, **last.gauges, "score": coder.score(unseen), "codes active": codes.nnz / codes.shape[0],
        "codes size": float(np.abs(codes.data).mean()), "atoms size": float(np.linalg.norm(coder.components_)),
        "atoms sum": float(np.abs(coder.components_.sum(0)).sum()),
        "probability": float(coder.activation_probability(unseen).mean()), **_spread(coder, unseen),
    }  # fmt: skip
    return {name: float(f"{value:.7g}") for name, value in found.items() if np.isfinite(value)}


def _spread(coder: SparseCoder, unseen: np.ndarray) -> dict[str, float]:
    try:
        return {"std": float(coder.transform(unseen, return_std=True)[1].mean())}
    except NotImplementedError:
        return {}


def tolerance(case: str, name: str) -> float:
    """Relative. Sums over a support change by whole components where a rounding error moves one across the cut, and so
    do widths that are set by such codes; lasso codes are those of any solver that closes the duality gap to 1e-3, and
    there are two. With fewer instructions (AVX2, SSE4) on one processor, widths moved by 0.008 at most, all else by
    0.001."""
    calibrated = case.startswith("hard-gaussian") and name == "std"
    return 0.02 if name.startswith("codes") or case == "fista" or calibrated else 2e-3


def stored() -> dict[str, dict[str, float]]:
    return json.loads(FILE.read_text(encoding="utf-8"))["figures"]
