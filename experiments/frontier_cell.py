"""One point of the frontier: train a method at a target count, measure it on unseen patches beside its rivals."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.frontier_rivals import rivals
from softspike import SparseCoder
from softspike.coder import Coder
from softspike.data import ArrayRows, Patches, Standardiser, TensorRows, olshausen_patches, photograph_patches
from softspike.methods import Built, Plan, method_named
from softspike.metric import active_count, dead_components, explained_variance
from softspike.model import VariationalCoder
from softspike.solver import SupportCorrection
from softspike.train import Progress

__all__ = ["OURS", "Cell", "complete", "patches"]

OURS = "hard-gaussian"
_CHUNK = 4000  # patches coded at a time


@dataclass(frozen=True)
class Cell:
    """All that a result depends on, besides the code."""

    data: str  # a path of the Olshausen–Field images, or "photographs"
    components: int
    method: str
    active: float
    seed: int
    steps: int
    batch: int
    learning_rate: float | None = None
    encoder_steps: int = 5
    rounds: int = 20  # of correction
    refits: int = 200  # of the dictionary, at most
    asked: float = 1.0  # of the count, what our method is asked for: counts of unseen patches scatter about it
    n_train: int = 80_000
    n_valid: int = 16_000
    positive: bool = False  # codes ≥ 0

    @property
    def name(self) -> str:
        depth = f"-k{self.encoder_steps}-r{self.rounds}" if self.method == OURS else ""
        depth += f"-f{self.refits}" if self.refits != 200 else ""
        depth += f"-q{self.asked:g}" if self.asked != 1 else ""
        depth += "-positive" if self.positive else ""
        rate = f"-lr{self.learning_rate:g}" if self.learning_rate else ""
        size = "" if (self.n_train, self.n_valid) == (80_000, 16_000) else f"-n{self.n_train}-{self.n_valid}"
        data = "photographs" if self.data == "photographs" else "olshausen"
        where = f"{data}-d{self.components}-{self.method}{depth}-a{self.active:g}"
        return f"{where}-t{self.steps}-b{self.batch}{rate}{size}-s{self.seed}"


@lru_cache(maxsize=2)
def patches(data: str, n_train: int, n_valid: int) -> Patches:
    """16×16, standardised per pixel with the statistics of the training patches."""
    if data != "photographs":
        return olshausen_patches(data, n_train, n_valid)
    raw = photograph_patches(n_train, n_valid)
    standardiser = Standardiser.fit(ArrayRows(raw.train), per_feature=True)
    return Patches(*(standardiser(torch.from_numpy(part)).numpy() for part in raw))


def complete(
    cell: Cell, folder: Path, device: str, solver_patches: int = 4000, compiled: bool = False
) -> dict[str, Any]:
    """The finished cell, from its file or by doing it now; the file appears when all is measured."""
    path = folder / f"{cell.name}.json"
    if path.exists():
        return json.loads(path.read_text())
    parts = patches(cell.data, cell.n_train, cell.n_valid)
    train, valid = (torch.from_numpy(part).to(device) for part in parts)
    began = time.perf_counter()
    estimator = _fit(cell, train, device, compiled)
    seconds = time.perf_counter() - began
    result: dict[str, Any] = {"cell": {**asdict(cell), "data": cell.name.split("-")[0]}, "device": _device(device)}
    result |= {"seconds": round(seconds, 1), **_measure(estimator, train, valid, solver_patches)}
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(result, indent=1))
    draft.rename(path)
    if device.startswith("cuda"):
        torch.cuda.empty_cache()  # the pursuits' gigabytes, for the other workers
    return result


def _device(name: str) -> str:
    return torch.cuda.get_device_name() if name.startswith("cuda") else "cpu"


def _fit(cell: Cell, train: Tensor, device: str, compiled: bool) -> SparseCoder:
    method: Callable[[Plan], Built] = method_named(cell.method)
    estimator = SparseCoder(
        cell.components, n_active=cell.active * (cell.asked if cell.method == OURS else 1),
        method=_compiled(method) if compiled else method, max_steps=cell.steps, batch_size=cell.batch,
        learning_rate=cell.learning_rate, encoder_steps=cell.encoder_steps, correction_rounds=cell.rounds,
        dictionary_refits=cell.refits, positive=cell.positive, random_state=cell.seed, device=device, verbose=False,
    )  # fmt: skip
    return estimator.fit_rows(TensorRows(train), observers=[_EagerAtEnd()] if compiled else ())


def _compiled(method: Callable[[Plan], Built]) -> Callable[[Plan], Built]:
    """The same coder with its encoder and its moments through torch.compile: the same numbers, fewer kernels."""
    from softspike.objective import expected

    def builder(plan: Plan) -> Built:
        torch._dynamo.reset()  # cells of other shapes share the code objects, of which only eight versions are kept
        torch.compiler.set_stance("default")
        built = method(plan)
        if isinstance(built.coder, VariationalCoder):
            built.coder.encoder.compile()
            if not hasattr(expected.hard_gaussian_moments, "_torchdynamo_orig_callable"):
                expected.hard_gaussian_moments = torch.compile(expected.hard_gaussian_moments)
        return Built(built.coder, replace(built.recipe, log_every=500))

    return builder


class _EagerAtEnd:
    """Compiles nothing for the shapes of calibration and measurement."""

    def logged(self, progress: Progress) -> None: ...

    def saved(self, progress: Progress) -> None:
        if progress.step == progress.n_steps:
            torch.compiler.set_stance("force_eager")


@torch.no_grad()
def _measure(estimator: SparseCoder, train: Tensor, valid: Tensor, n: int) -> dict[str, Any]:
    coder, standardiser = estimator.coder_, estimator.standardiser_
    x = standardiser(valid)
    codes = _codes(coder, x)
    rebuilt = coder.generator(codes)
    left = (x - rebuilt).square().sum(-1) / x.square().sum(-1)
    return {
        "explained_variance": explained_variance(x, rebuilt),
        "active": active_count(codes),
        "expected": _expected(coder, x),
        "dead": dead_components(_codes(coder, standardiser(train))) / codes.shape[1],  # of all training patches
        "worst_patch": float(left.max()),  # ‖x − x̂‖²/‖x‖²
        "uncorrected": _uncorrected(coder, x),
        "rivals": rivals(x[:n], coder.generator.atoms.detach(), codes[:n]) if n else {},
    }


def _codes(coder: Coder, x: Tensor) -> Tensor:
    return torch.cat([coder.code(part) for part in x.split(_CHUNK)])


def _expected(coder: Coder, x: Tensor) -> float | None:
    """The mean of Σᵢ γᵢ(x): how many components the calibrated probabilities say to be active."""
    if not isinstance(coder, VariationalCoder):
        return None
    return float(torch.cat([coder.activation_probability(part).sum(-1) for part in x.split(_CHUNK)]).mean())


def _uncorrected(coder: Coder, x: Tensor) -> float | None:
    """Explained variance of the first code, refitted on its support, for a model that corrects it."""
    if not (isinstance(coder, VariationalCoder) and coder.correction is not None):
        return None
    first, atoms = SupportCorrection(0, coder.correction.positive), coder.generator.atoms
    codes = [first(part, atoms, coder.trained_law(part).code(coder.cut)).code for part in x.split(_CHUNK)]
    return explained_variance(x, coder.generator(torch.cat(codes)))
