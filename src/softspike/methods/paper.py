"""The paper's seven variational methods, and the same with the threshold centred at zero."""

from collections.abc import Callable
from typing import NamedTuple

from softspike.encoder import Encoder
from softspike.methods.networks import LinearNetworks
from softspike.methods.plan import Built, Networks, Plan
from softspike.model import VariationalCoder
from softspike.objective import BestOf
from softspike.posterior import GaussianPosterior, LaplacePosterior, Posterior, SpikeSlabPosterior
from softspike.prior import LaplacePrior, NormalPrior, Prior, SpikeSlabPrior
from softspike.schedule import Exponential, Ramp
from softspike.threshold import FixedLevel, GammaLevel, Level, Threshold, ThresholdedLaw, level_for_activity

__all__ = ["gaussian", "laplacian", "plain", "spike_and_slab", "thresholded"]


class Base(NamedTuple):
    """A posterior head and the prior it is compared with."""

    posterior: Posterior
    prior: Prior


def gaussian(plan: Plan, width: int) -> Base:
    """N(μ, σ²) against N(0, 0.1)."""
    return Base(GaussianPosterior(width, plan.n_components), NormalPrior(0.1))


def laplacian(plan: Plan, width: int) -> Base:
    """Laplace(μ, b) against Laplace(0, 0.1), the noise warmed up from a tenth."""
    warm_up = Ramp(0.1, 2e-4 / plan.pace, delay=round(1500 * plan.pace))
    return Base(LaplacePosterior(width, plan.n_components, warm_up), LaplacePrior(0.1))


def spike_and_slab(plan: Plan, width: int) -> Base:
    """Tonolini et al.'s, with their warm-up and a temperature falling from 1 to ½."""
    posterior = SpikeSlabPosterior(
        width,
        plan.n_components,
        warm_up=Ramp(0.0, 2e-4 / plan.pace, delay=round(1500 * plan.pace)),
        temperature=Exponential(1.0, 0.9995 ** (1 / plan.pace), 0.5),
    )
    return Base(posterior, SpikeSlabPrior(plan.activity, 0.1))


def plain(base: Callable[[Plan, int], Base]) -> Callable[[Plan], Built]:
    """The base law itself, without a threshold."""

    def builder(plan: Plan) -> Built:
        encoder = _networks(plan).encoder(plan)
        return _compose(plan, encoder, base(plan, encoder.width), None)

    return builder


def thresholded(
    base: Callable[[Plan, int], Base], law: type[ThresholdedLaw], gamma: bool = False
) -> Callable[[Plan], Built]:
    """The base law behind a threshold at the level of the target activity, fixed or with a Gamma law around it."""

    def builder(plan: Plan) -> Built:
        encoder = _networks(plan).encoder(plan)
        parts = base(plan, encoder.width)
        value = level_for_activity(parts.prior.law, plan.activity)
        level: Level = GammaLevel(encoder.width, plan.n_components, value) if gamma else FixedLevel(value)
        return _compose(plan, encoder, parts, Threshold(law, level))

    return builder


def _compose(plan: Plan, encoder: Encoder, base: Base, threshold: Threshold | None) -> Built:
    networks = _networks(plan)
    coder = VariationalCoder(
        encoder, base.posterior, base.prior, networks.generator(plan), BestOf(plan.n_samples), threshold,
        beta=plan.beta, level_beta=0.1 * plan.beta,
    )  # fmt: skip
    return Built(coder, networks.recipe(plan))


def _networks(plan: Plan) -> Networks:
    return plan.networks if plan.networks is not None else LinearNetworks()
