"""The named methods: strings end here. Each name is a function from a plan to a composed coder and its recipe."""

import copy
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.optim import Adam

from softspike.autoencoder import Autoencoder, BatchTopKAutoencoder, JumpReLUAutoencoder, TopKAutoencoder
from softspike.coder import Coder
from softspike.encoder import Encoder, MLPEncoder, UnrolledEncoder
from softspike.generator import Dictionary, UnitNormDictionary
from softspike.model import VariationalCoder
from softspike.objective import BestOf, Expected
from softspike.posterior import GaussianAround, GaussianPosterior, LaplacePosterior, Posterior, SpikeSlabPosterior
from softspike.prior import LaplacePrior, LearnedSpikeSlabPrior, NormalPrior, Prior, SpikeSlabPrior
from softspike.schedule import Exponential, OneCycle, Ramp
from softspike.solver import FistaCoder
from softspike.threshold import (
    CentredSoft,
    FixedLevel,
    GammaLevel,
    Hard,
    PositiveHard,
    ShiftedSoft,
    Threshold,
    ThresholdedLaw,
    TrackedLevel,
    level_for_activity,
)
from softspike.train import GroupRecipe, Recipe

__all__ = ["METHODS", "POSITIVE_METHODS", "Built", "Plan", "build", "composed", "method_named"]

_PUBLISHED_STEPS = 240_000


@dataclass(frozen=True)
class Plan:
    """The numbers a method is built from."""

    n_features: int
    n_components: int
    activity: float  # target share of active components
    n_steps: int
    batch_size: int
    n_samples: int = 20  # J, for the methods that sample
    learning_rate: float | None = None  # None: the method's own
    positive: bool = False
    encoder_steps: int = 5  # unrolled steps, for the method that unrolls
    beta: float = 1e-2

    @property
    def pace(self) -> float:
        """This plan's length in published schedules; warm-ups shrink with it."""
        return self.n_steps / _PUBLISHED_STEPS


class Built(NamedTuple):
    coder: Coder
    recipe: Recipe


def method_named(name: str, positive: bool = False) -> Callable[[Plan], Built]:
    """The builder of that name; an unknown name is answered with the nearest known one."""
    if name in METHODS:
        if positive and name not in POSITIVE_METHODS:
            can = ", ".join(sorted(POSITIVE_METHODS))
            raise ValueError(f"positive is True, but the codes of method {name!r} are signed; use one of: {can}")
        return METHODS[name]
    near = difflib.get_close_matches(str(name), METHODS, n=1, cutoff=0.0)
    raise ValueError(f"method is {name!r}, which is unknown; did you mean {near[0]!r}? Known: {', '.join(METHODS)}")


def composed(coder: Coder) -> Callable[[Plan], Built]:
    """A builder from a model composed by hand: a fresh copy of it each time, trained by Adam."""

    def builder(plan: Plan) -> Built:
        given, needed = tuple(coder.generator.atoms.shape), (plan.n_features, plan.n_components)
        if given != needed:
            raise ValueError(
                f"the composed model's atoms have shape {given}, expected (n_features, n_components) = {needed}; "
                "compose it for this data and give n_components to match"
            )
        return Built(copy.deepcopy(coder), _recipe(plan, 1e-3, 1e-2))

    return builder


def build(method: Callable[[Plan], Built], plan: Plan, seed: int) -> Built:
    """Call the builder with its own stream of random numbers, leaving the caller's untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return method(plan)


def _recipe(plan: Plan, rate: float, generator_rate: float) -> Recipe:
    return Recipe(
        plan.n_steps,
        plan.batch_size,
        Adam,
        {
            "inference": GroupRecipe(OneCycle(plan.learning_rate or rate, plan.n_steps)),
            "generator": GroupRecipe(OneCycle(plan.learning_rate or generator_rate, plan.n_steps)),
        },
        clip_norm=1.0,
    )


def _compose(plan: Plan, encoder: Encoder, posterior: Posterior, prior: Prior, threshold: Threshold | None) -> Built:
    coder = VariationalCoder(
        encoder, posterior, prior, Dictionary(plan.n_features, plan.n_components), BestOf(plan.n_samples), threshold,
        beta=plan.beta, level_beta=0.1 * plan.beta,
    )  # fmt: skip
    return Built(coder, _recipe(plan, 1e-3, 1e-2))


def _laplace_warm_up(plan: Plan) -> Ramp:
    return Ramp(0.1, 2e-4 / plan.pace, delay=round(1500 * plan.pace))


def _gaussian(plan: Plan) -> Built:
    encoder = MLPEncoder(plan.n_features)
    return _compose(plan, encoder, GaussianPosterior(encoder.width, plan.n_components), NormalPrior(0.1), None)


def _laplacian(plan: Plan) -> Built:
    encoder = MLPEncoder(plan.n_features)
    posterior = LaplacePosterior(encoder.width, plan.n_components, _laplace_warm_up(plan))
    return _compose(plan, encoder, posterior, LaplacePrior(0.1), None)


def _spike_and_slab(plan: Plan) -> Built:
    encoder = MLPEncoder(plan.n_features)
    posterior = SpikeSlabPosterior(
        encoder.width,
        plan.n_components,
        warm_up=Ramp(0.0, 2e-4 / plan.pace, delay=round(1500 * plan.pace)),
        temperature=Exponential(1.0, 0.9995 ** (1 / plan.pace), 0.5),
    )
    return _compose(plan, encoder, posterior, SpikeSlabPrior(plan.activity, 0.1), None)


def _thresholded(base: str, law: type[ThresholdedLaw], gamma: bool) -> Callable[[Plan], Built]:
    def builder(plan: Plan) -> Built:
        encoder = MLPEncoder(plan.n_features)
        prior: Prior
        posterior: Posterior
        if base == "laplace":
            prior = LaplacePrior(0.1)
            posterior = LaplacePosterior(encoder.width, plan.n_components, _laplace_warm_up(plan))
        else:
            prior, posterior = NormalPrior(0.1), GaussianPosterior(encoder.width, plan.n_components)
        value = level_for_activity(prior.law, plan.activity)
        level = GammaLevel(encoder.width, plan.n_components, value) if gamma else FixedLevel(value)
        return _compose(plan, encoder, posterior, prior, Threshold(law, level))

    return builder


def _fista(plan: Plan) -> Built:
    generator = Dictionary(plan.n_features, plan.n_components, frobenius=1e-3)
    coder = FistaCoder(generator, penalty=1.0, positive=plan.positive, target=plan.activity * plan.n_components)
    return Built(coder, _recipe(plan, 1e-3, 1e-2))


def _hard_gaussian(plan: Plan) -> Built:
    """Ours: an unrolled encoder tied to a unit-norm dictionary, a hard threshold held at the target count, and the
    expected bound in closed form."""
    generator = UnitNormDictionary(plan.n_features, plan.n_components)
    one = NormalPrior(1.0).law  # correlations of standardised data with unit-norm atoms start near N(0, 1)
    level = TrackedLevel(level_for_activity(one, plan.activity), plan.activity * plan.n_components)
    # 1.6 over the largest eigenvalue of a random AᵀA.
    rate = 1.6 / (1 + (plan.n_components / plan.n_features) ** 0.5) ** 2
    coder = VariationalCoder(
        encoder=UnrolledEncoder(generator, level, n_steps=plan.encoder_steps, rate=rate, positive=plan.positive),
        posterior=GaussianAround(plan.n_components, level),
        prior=LearnedSpikeSlabPrior(plan.activity, positive=plan.positive),
        threshold=Threshold(PositiveHard if plan.positive else Hard, level),
        generator=generator,
        objective=Expected(),
        refit_steps=3,
    )
    peak = OneCycle(plan.learning_rate or 4e-3, plan.n_steps, rise=0.02, start_factor=0.01, end=0.0)
    groups = {name: GroupRecipe(peak) for name in ("inference", "generator")}
    return Built(coder, Recipe(plan.n_steps, plan.batch_size, Adam, groups, clip_norm=10.0))


def _autoencoder(kind: type[Autoencoder]) -> Callable[[Plan], Built]:
    def builder(plan: Plan) -> Built:
        generator = UnitNormDictionary(plan.n_features, plan.n_components)
        coder = kind(generator, plan.activity * plan.n_components, positive=plan.positive)
        return Built(coder, _recipe(plan, 3e-3, 3e-3))

    return builder


METHODS: dict[str, Callable[[Plan], Built]] = {
    "hard-gaussian": _hard_gaussian,
    "gaussian": _gaussian,
    "laplacian": _laplacian,
    "spike-and-slab": _spike_and_slab,
    "thresholded-gaussian": _thresholded("normal", ShiftedSoft, gamma=False),
    "thresholded-gaussian-gamma": _thresholded("normal", ShiftedSoft, gamma=True),
    "thresholded-laplacian": _thresholded("laplace", ShiftedSoft, gamma=False),
    "thresholded-laplacian-gamma": _thresholded("laplace", ShiftedSoft, gamma=True),
    "centred-gaussian": _thresholded("normal", CentredSoft, gamma=False),
    "centred-laplacian": _thresholded("laplace", CentredSoft, gamma=False),
    "fista": _fista,
    "topk": _autoencoder(TopKAutoencoder),
    "batchtopk": _autoencoder(BatchTopKAutoencoder),
    "jumprelu": _autoencoder(JumpReLUAutoencoder),
}
POSITIVE_METHODS = frozenset({"hard-gaussian", "fista", "topk", "batchtopk", "jumprelu"})
