"""What k more steps from the amortised code buy: proximal ones, warm and cold, refitting alone, and corrected supports.

    python -m experiments.refinement --images scratch/data/olshausen.npy --out docs/results

The proximal map of the model's own penalty (λ²/2η)·‖z‖₀ at rate η is the hard threshold at λ, so a step is
z ← H_λ(z + ηAᵀ(x − Az)), shortened where it would raise the error; afterwards one step of least squares on the support,
as for every code. λ is the level of the deterministic code, η the last rate that the encoder has learned. A round of
correction adds, refits, drops and refits, as `SupportCorrection` does, here at the mean count of the amortised code;
cold, it starts from a threshold on Aᵀx that leaves that count, or from nothing. Its levels are set for each start, on
the very patches that are coded, so that all rows of one table have one count.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from softspike import SparseCoder
from softspike.data import olshausen_patches, synthetic
from softspike.metric import active_count, explained_variance
from softspike.solver import SupportCorrection, omp, omp_at_mean_count, omp_by_gain, refit_on_support
from softspike.threshold import level_for_count

STEPS, ROUNDS = (1, 2, 5, 10, 20), (1, 2, 5, 10, 20, 30)


def proximal_steps(x: Tensor, atoms: Tensor, z: Tensor, rate: float, level: float, k: int, positive: bool) -> Tensor:
    """k steps of iterative hard thresholding; where a whole step would raise ‖x − Az‖, the longest that does not."""

    def cut(u: Tensor) -> Tensor:
        return u * ((u if positive else u.abs()) > level)

    for _ in range(k):
        slope = (x - z @ atoms.T) @ atoms
        path = cut(z + rate * slope) - z
        gain, bend = (slope * path).sum(-1, keepdim=True), (path @ atoms.T).square().sum(-1, keepdim=True)
        z = cut(z + (2 * gain / bend.clamp_min(1e-9)).clamp(0, 1) * path)
    return z


@torch.no_grad()
def compare(coder: SparseCoder, data: Tensor) -> dict[str, list[float]]:
    """Mean count, explained variance and ½‖r‖² + penalty·count, by how the codes were made."""
    model = coder.coder_
    x, atoms = coder.standardiser_(data), model.generator.atoms
    rate, level = float(model.encoder.log_rate[-1].exp()), float(model.tracked.value * model.cut)
    start = model.trained_law(x).code(model.cut)

    def row(z: Tensor) -> list[float]:
        reconstruction, count = z @ atoms.T, active_count(z)
        objective = 0.5 * float((x - reconstruction).square().sum(-1).mean()) + level**2 / (2 * rate) * count
        return [round(v, 4) for v in (count, explained_variance(x, reconstruction), objective)]

    table = {f"amortised, {n} refits": row(refit_on_support(x, atoms, start, n)) for n in (0, 1, 2, 4, 8)}
    for k in STEPS:
        for name, z in (("warm", start), ("cold", torch.zeros_like(start))):
            steps = proximal_steps(x, atoms, z, rate, level, k, coder.positive)
            table[f"{name}, {k} steps, 1 refit"] = row(refit_on_support(x, atoms, steps))
    for n in ROUNDS:
        for name, z in starts(x, atoms, start, coder.positive).items():
            correction = SupportCorrection(n, coder.positive)
            correction.calibrate(x, atoms, z, active_count(start))
            table[f"{name}, {n} rounds of correction"] = row(correction(x, atoms, z).code)
    if not coder.positive:
        table["OMP, one tolerance"] = row(omp_at_mean_count(x, atoms, active_count(start)))
        table["OMP, one gain"] = row(omp_by_gain(x, atoms, active_count(start)))
    return table


@torch.no_grad()
def costs(coder: SparseCoder, data: Tensor) -> dict[str, float]:
    """Processor time of codes corrected in n rounds, and of OMP to the same count, over that of uncorrected ones: the
    least of five turns each."""
    model = coder.coder_
    x, atoms = coder.standardiser_(data), model.generator.atoms

    def first() -> Tensor:
        return model.trained_law(x).code(model.cut)

    def corrected(n: int) -> Callable[[], object]:
        correction = SupportCorrection(n, coder.positive)
        correction.calibrate(x, atoms, first(), active_count(first()))
        return lambda: correction(x, atoms, first())

    ways = {f"{n} rounds": corrected(n) for n in (0, *ROUNDS)}
    ways["OMP, fixed count"] = lambda: omp(x, atoms, n_active=round(active_count(first())))
    took = {name: min(_seconds(way) for _ in range(5)) for name, way in ways.items()}
    return {name: round(seconds / took["0 rounds"], 2) for name, seconds in took.items()}


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def starts(x: Tensor, atoms: Tensor, amortised: Tensor, positive: bool) -> dict[str, Tensor]:
    """Where a correction may begin: the encoder's code, the largest of Aᵀx, nothing."""
    match = x @ atoms
    size = match if positive else match.abs()
    largest = match * (size > level_for_count(size, active_count(amortised)))
    return {"amortised": amortised, "thresholded Aᵀx": largest, "nothing": torch.zeros_like(amortised)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="experiments.refinement", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=Path, required=True, help="the Olshausen–Field images")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    patches = olshausen_patches(options.images, n_train=20_000, n_valid=4000)
    known = synthetic(8192 + 2048, 32, 64, 3, seed=0)
    cases = {
        **{f"olshausen, {n}": (SparseCoder(256, n_active=n), patches.train, patches.valid) for n in (6, 26, 50)},
        "synthetic": (SparseCoder(64, n_active=3, positive=True), known.x[:8192], known.x[8192:]),
    }
    result = {}
    for name, (coder, train, test) in cases.items():
        coder.set_params(max_steps=options.steps, random_state=0, verbose=False, device="cpu").fit(train)
        result[name] = compare(coder, torch.as_tensor(test))
        result[f"{name}, processor time over uncorrected"] = costs(coder, torch.as_tensor(test))
    options.out.mkdir(parents=True, exist_ok=True)
    content = {"columns": ["mean count", "explained variance", "objective"], **result}
    text = "{\n" + ",\n".join(f'"{name}": {json.dumps(part)}' for name, part in content.items()) + "\n}\n"
    (options.out / "recovery_refinement.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
