"""What the default model could have been instead: one thing changed at a time, everything else as it is.

    python -m experiments.choices --images IMAGES.npy --out OUT [--active 6,26] [--only NAME,…]

Olshausen–Field patches, 256 components, 1,000 steps of 256, no last fit of the dictionary; explained variance of 4,000
unseen patches by the first code on its support and by the corrected one. Samples go through the threshold with the
library's straight-through gradient; SGD has momentum 0.9 and the schedule of Adam. A finished row is kept.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Gamma, kl_divergence
from torch.optim import SGD

from experiments.workers import names_of
from softspike import SparseCoder
from softspike.data import olshausen_patches
from softspike.methods import Built, Plan
from softspike.methods.ours import hard_gaussian
from softspike.metric import active_count, dead_components, explained_variance
from softspike.model import VariationalCoder
from softspike.objective import Evidence, Expected, Objective, Terms
from softspike.posterior import noise, place
from softspike.report.table import print_grid
from softspike.schedule import OneCycle
from softspike.solver import SupportCorrection
from softspike.threshold import FixedLevel, Threshold
from softspike.train import GroupRecipe

N_STEPS, BATCH = 1000, 256


@dataclass(frozen=True)
class Drawn(Objective):
    """The same bound with the misfit of J samples in place of its expectation; divergence and count stay closed."""

    n_samples: int = 1

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        terms, n = Expected()(evidence), evidence.x.shape[-1]
        misfit = evidence.misfit(evidence.codes(evidence.noise(self.n_samples, generator))).mean(0)
        v = misfit.detach().mean()
        loss = 0.5 * n * (misfit / v + torch.log(2 * math.pi * v)) + terms.kl
        return terms._replace(loss=loss, misfit=misfit, unit=1 / v)


class Weighted(Objective):
    """The divergence weighs w, or grows to w over the first `rise` batches that are seen."""

    def __init__(self, weight: float, rise: int = 0):
        self.weight, self.rise, self.seen = weight, rise, 0

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        terms = Expected()(evidence)
        self.seen += 1
        weight = self.weight * min(self.seen / self.rise, 1.0) if self.rise else self.weight
        return terms._replace(loss=terms.loss + (weight - 1) * terms.kl)


class GammaLevels(Objective):
    """Levels λ·g of each input, g ~ Gamma(αᵢ, αᵢ) of mean 1: the bound in closed form once g is drawn, and, where the
    shapes are learned, KL(Gamma(αᵢ, αᵢ) ‖ Gamma(3, 3)) of each component, the paper's prior."""

    def __init__(self, log_shape: Tensor):
        self.log_shape = log_shape  # (d,)

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        assert evidence.threshold is not None
        shape, prior, value = self.log_shape.exp(), Gamma(3.0, 3.0), evidence.threshold.level.value
        law = Gamma(shape, shape).expand(evidence.beliefs.settled.batch_shape)
        drawn = Threshold(evidence.threshold.law_type, FixedLevel(0.0))
        drawn.level.value = value * place(law, noise(law, 1, generator))[0]
        terms = Expected()(replace(evidence, threshold=drawn))
        (slope,) = torch.autograd.grad(terms.active.mean(), value, retain_graph=True)
        kl = kl_divergence(law, prior.expand(law.batch_shape)).sum(-1) if shape.requires_grad else 0.0
        return terms._replace(loss=terms.loss + kl, kl=terms.kl + kl, active_slope=slope.expand_as(terms.active))


def _gamma_levels(shape: float, learned: bool = False) -> Callable[[Plan], Built]:
    def built(plan: Plan) -> Built:
        coder, recipe = hard_gaussian(plan)
        assert isinstance(coder, VariationalCoder)
        log_shape = torch.full((plan.n_components,), math.log(shape))
        if learned:
            coder.log_shape = nn.Parameter(log_shape)
        coder.objective = GammaLevels(coder.log_shape if learned else log_shape)  # type: ignore[arg-type]
        return Built(coder, recipe)

    return built


def _objective(make: Callable[[], Objective]) -> Callable[[Plan], Built]:
    def built(plan: Plan) -> Built:
        coder, recipe = hard_gaussian(plan)
        assert isinstance(coder, VariationalCoder)
        coder.objective = make()
        return Built(coder, recipe)

    return built


def _descent(peak: float) -> Callable[[Plan], Built]:
    def built(plan: Plan) -> Built:
        coder, recipe = hard_gaussian(plan)
        rate = OneCycle(peak, plan.n_steps, rise=0.02, start_factor=0.01, end=0.0)
        groups = {name: GroupRecipe(rate, {"momentum": 0.9}) for name in recipe.groups}
        return Built(coder, replace(recipe, optimizer=SGD, groups=groups))

    return built


CHOICES: dict[str, Callable[[Plan], Built]] = {
    "default": hard_gaussian,
    "one-sample": _objective(Drawn),
    "twenty-samples": _objective(lambda: Drawn(20)),
    "sgd-1e-4": _descent(1e-4),
    "sgd-1e-3": _descent(1e-3),
    "sgd-1e-2": _descent(1e-2),
    "kl-grows": _objective(lambda: Weighted(1.0, N_STEPS // 2)),
    "kl-half": _objective(lambda: Weighted(0.5)),
    "kl-twice": _objective(lambda: Weighted(2.0)),
    "gamma-3": _gamma_levels(3.0),
    "gamma-30": _gamma_levels(30.0),
    "gamma-learned": _gamma_levels(30.0, learned=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="experiments.choices", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", required=True, help="the Olshausen–Field images, .mat or .npy")
    parser.add_argument("--active", type=lambda text: [float(part) for part in text.split(",")], default=[6.0, 26.0])
    parser.add_argument("--only", type=names_of(CHOICES), default=list(CHOICES), help=f"of {', '.join(CHOICES)}")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    target = options.out / "choices.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(target.read_text()) if target.exists() else {}
    train, valid = olshausen_patches(options.images, 20_000, 4_000)
    for name in options.only:
        for active in options.active:
            key = f"{name}, {active:g} active"
            rows[key] = rows.get(key) or _row(CHOICES[name], active, train, torch.from_numpy(valid))
            target.write_text(json.dumps(rows, indent=1))
            print(key, rows[key], flush=True)
    columns = list(next(iter(rows.values())))
    print_grid(["choice", *columns], [[key, *(f"{row[c]:.4g}" for c in columns)] for key, row in rows.items()])


@torch.no_grad()
def _row(method: Callable[[Plan], Built], active: float, train: object, valid: Tensor) -> dict[str, float]:
    estimator = SparseCoder(
        256, n_active=active, method=method, max_steps=N_STEPS, batch_size=BATCH, dictionary_refits=0,
        random_state=0, device="cpu", verbose=False,
    )  # fmt: skip
    began = time.perf_counter()
    with torch.enable_grad():
        coder = estimator.fit(train).coder_
    assert isinstance(coder, VariationalCoder)
    x, atoms = estimator.standardiser_(valid), coder.generator.atoms
    codes = coder.code(x)
    first = SupportCorrection(0, positive=False)(x, atoms, coder.trained_law(x).code(coder.cut)).code
    found = {
        "first code": explained_variance(x, coder.generator(first)),
        "corrected": explained_variance(x, coder.generator(codes)),
        "active": active_count(codes), "dead": dead_components(codes), "seconds": time.perf_counter() - began,
    }  # fmt: skip
    return {name: round(value, 4) for name, value in found.items()}


if __name__ == "__main__":
    main()
