"""What the fused step needs to know of a coder and its recipe, or why it cannot train them."""

from dataclasses import dataclass

from torch import nn
from torch.optim import SGD

from softspike.coder import Coder
from softspike.encoder import MLPEncoder
from softspike.generator import Dictionary
from softspike.kernels.sampling import Law
from softspike.kernels.settings import Settings
from softspike.model import VariationalCoder
from softspike.objective import BestOf, MeanOf
from softspike.posterior import (
    GaussianPosterior,
    LaplacePosterior,
    SpikeSlabPosterior,
    clipped_log_of_rate,
    log_of_rate,
    logit_of_rate,
)
from softspike.prior import LaplacePrior, NormalPrior, SpikeSlabPrior
from softspike.schedule import Constant, Schedule
from softspike.threshold import SLOPES, FixedLevel, GammaLevel, ShiftedSoft
from softspike.train.recipe import Recipe
from softspike.train.together import NotTogether

__all__ = ["NotFused", "Reading", "check_alike", "check_recipe", "must", "read"]


class NotFused(NotTogether):
    """The fused step has no kernel for this model or recipe; says for what."""


@dataclass(frozen=True)
class Reading:
    """One coder as the fused step sees it. Layers are the coder's own: read at the start, written at the end."""

    law: Law
    settings: Settings
    layers: list[nn.Linear]
    heads: list[nn.Linear]
    dictionary: Dictionary
    warm_up: Schedule
    temperature: Schedule


_READINGS: list[object] = [logit_of_rate, log_of_rate, clipped_log_of_rate]  # numbered as in `Settings`


def read(coder: Coder) -> Reading:
    """Raises NotFused, in one sentence, for what has no kernel."""
    if not isinstance(coder, VariationalCoder):
        raise NotFused(f"{type(coder).__name__} has no fused step; it is for a VariationalCoder")
    must(type(coder.encoder) is MLPEncoder, f"an MLPEncoder, not a {type(coder.encoder).__name__}")
    must(type(coder.generator) is Dictionary, f"a Dictionary, not a {type(coder.generator).__name__}")
    law, heads = _law(coder)
    return Reading(
        law,
        _settings(coder),
        [layer for layer in coder.encoder.layers if isinstance(layer, nn.Linear)],  # type: ignore[union-attr]
        heads,
        coder.generator,  # type: ignore[arg-type]
        getattr(coder.posterior, "warm_up", Constant(1.0)),
        getattr(coder.posterior, "temperature", Constant(1.0)),
    )


def must(holds: bool, needed: str) -> None:
    """NotFused, unless it holds."""
    if not holds:
        raise NotFused(f"the fused step is for {needed}")


def _law(coder: VariationalCoder) -> tuple[Law, list[nn.Linear]]:
    posterior, threshold = coder.posterior, coder.threshold
    if isinstance(posterior, SpikeSlabPosterior):
        must(threshold is None, "a spike-and-slab without a threshold")
        return Law(False, 3), [posterior.location, posterior.log_variance, posterior.spike]
    if isinstance(posterior, GaussianPosterior):
        laplace, heads = False, [posterior.location, posterior.log_variance]
    elif isinstance(posterior, LaplacePosterior):
        laplace, heads = True, [posterior.location, posterior.log_scale]
    else:
        raise NotFused(f"the fused step has no kernel for a {type(posterior).__name__}")
    if threshold is None:
        return Law(laplace, 0), heads
    must(threshold.law_type is ShiftedSoft, f"a ShiftedSoft threshold, not {threshold.law_type.__name__}")
    if isinstance(threshold.level, GammaLevel):
        return Law(laplace, 2), [*heads, threshold.level.log_concentration, threshold.level.log_rate]
    must(type(threshold.level) is FixedLevel, f"a fixed or Gamma level, not a {type(threshold.level).__name__}")
    return Law(laplace, 1), heads


def _settings(coder: VariationalCoder) -> Settings:
    objective, prior, threshold = coder.objective, coder.prior, coder.threshold
    averages = isinstance(objective, MeanOf) and objective.n_samples == 1
    must(isinstance(objective, BestOf) or averages, f"BestOf(J), not {objective}")
    must(isinstance(prior, NormalPrior | LaplacePrior | SpikeSlabPrior), f"a fixed prior, not {type(prior).__name__}")
    numbers: dict[str, float] = {}
    if isinstance(prior, SpikeSlabPrior):
        numbers["prior_logit"] = float(prior.logit)
        read = getattr(coder.posterior, "read_spike", None)
        must(read in _READINGS, f"a known reading of the spike's head, not {read}")
        numbers["reading"] = float(_READINGS.index(read))
    if threshold is not None:
        must(type(threshold.gradient) in SLOPES, f"a known gradient, not {type(threshold.gradient).__name__}")
        numbers["location_slope"], numbers["silent_slope"] = SLOPES[type(threshold.gradient)]
        if isinstance(threshold.level, GammaLevel):
            numbers["level_beta"] = float(coder.level_beta)
            numbers["level_shape"] = float(threshold.level.prior_concentration)
            numbers["level_rate"] = float(threshold.level.prior_rate)
        else:
            numbers["level"] = float(threshold.level.value)
    return Settings(objective.n_samples, float(coder.beta), float(prior.scale), **numbers)  # type: ignore[attr-defined]


def check_recipe(recipe: Recipe) -> float:
    """The momentum of the inference group; NotFused where the recipe is not the paper's kind."""
    must(recipe.optimizer is SGD, f"SGD, not {getattr(recipe.optimizer, '__name__', recipe.optimizer)}")
    must(recipe.clip_norm is None, "a recipe without gradient clipping")
    inference, generator = dict(recipe.groups["inference"].options), dict(recipe.groups["generator"].options)
    must(not generator, f"a generator without optimiser options, not {generator}")
    momentum = inference.pop("momentum", 0.0)
    must(
        inference.pop("nesterov", False) and not inference, "Nesterov momentum and nothing else in the inference group"
    )
    return float(momentum)


def check_alike(readings: list[Reading]) -> list[Reading]:
    """The same readings, or NotFused where they differ in what replicas must share: all sizes, and the penalty."""
    shapes = [
        (
            [tuple(layer.weight.shape) for layer in reading.layers],
            tuple(reading.dictionary.weight.shape),
            reading.dictionary.frobenius,
        )
        for reading in readings
    ]
    for number, shape in enumerate(shapes):
        must(shape == shapes[0], f"coders of the same sizes and penalty; coder {number} has {shape}, not {shapes[0]}")
    return readings
