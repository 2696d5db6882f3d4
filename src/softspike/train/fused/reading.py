"""What the fused step needs to know of a coder and its recipe, or why it cannot train them."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.optim import SGD

from softspike.coder import Coder
from softspike.encoder import MLPEncoder
from softspike.generator import Dictionary
from softspike.kernels.sampling import Form, Law
from softspike.kernels.settings import Settings
from softspike.model import VariationalCoder
from softspike.objective import BestOf, MeanOf
from softspike.posterior import (
    GaussianPosterior,
    LaplacePosterior,
    Posterior,
    SpikeSlabPosterior,
    clipped_log_of_rate,
    log_of_rate,
    logit_of_rate,
)
from softspike.prior import LaplacePrior, NormalPrior, Prior, SpikeSlabPrior
from softspike.schedule import Constant, Schedule
from softspike.threshold import SLOPES, FixedLevel, GammaLevel, ShiftedSoft, Threshold
from softspike.train.augment import AsItIs
from softspike.train.recipe import Recipe
from softspike.train.together import NotTogether

__all__ = ["NotFused", "Reading", "check_alike", "check_recipe", "must", "must_learn", "read"]


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


class _Family(NamedTuple):
    """What a posterior goes with: by exact types, since a subclass may compute something else."""

    laplace: bool
    form: Form  # without a threshold
    heads: tuple[str, ...]
    prior: type[Prior]


_FAMILIES: dict[type[Posterior], _Family] = {
    GaussianPosterior: _Family(False, Form.PLAIN, ("location", "log_variance"), NormalPrior),
    LaplacePosterior: _Family(True, Form.PLAIN, ("location", "log_scale"), LaplacePrior),
    SpikeSlabPosterior: _Family(False, Form.SPIKE, ("location", "log_variance", "spike"), SpikeSlabPrior),
}
_READINGS: list[object] = [logit_of_rate, log_of_rate, clipped_log_of_rate]  # numbered as in `Settings`


def read(coder: Coder) -> Reading:
    """Raises NotFused, in one sentence, for what has no kernel."""
    must(type(coder) is VariationalCoder, f"a VariationalCoder, not a {type(coder).__name__}")
    assert isinstance(coder, VariationalCoder)
    must_learn(coder)
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


def must_learn(coder: Coder) -> None:
    """NotFused, unless all of its parameters are learned, in float32."""
    learned = all(parameter.requires_grad and parameter.dtype == torch.float32 for parameter in coder.parameters())
    must(learned, "coders all of whose parameters are learned, in float32")


def _law(coder: VariationalCoder) -> tuple[Law, list[nn.Linear]]:
    posterior, threshold = coder.posterior, coder.threshold
    must(type(posterior) in _FAMILIES, f"a posterior that has a kernel, not a {type(posterior).__name__}")
    family = _FAMILIES[type(posterior)]
    pair = f"a {type(posterior).__name__} with a {family.prior.__name__}, not a {type(coder.prior).__name__}"
    must(type(coder.prior) is family.prior, pair)
    heads = [getattr(posterior, name) for name in family.heads]
    if threshold is None:
        return Law(family.laplace, family.form), heads
    must(family.form == Form.PLAIN, f"a {type(posterior).__name__} without a threshold")
    must(type(threshold) is Threshold, f"a Threshold, not a {type(threshold).__name__}")
    must(threshold.law_type is ShiftedSoft, f"a ShiftedSoft threshold, not {threshold.law_type.__name__}")
    level = threshold.level
    must(type(level) in (FixedLevel, GammaLevel), f"a fixed or Gamma level, not a {type(level).__name__}")
    if isinstance(level, GammaLevel):
        return Law(family.laplace, Form.GAMMA), [*heads, level.log_concentration, level.log_rate]
    return Law(family.laplace, Form.FIXED), heads


def _settings(coder: VariationalCoder) -> Settings:
    objective, prior, threshold = coder.objective, coder.prior, coder.threshold
    averages = type(objective) is MeanOf and objective.n_samples == 1
    must(type(objective) is BestOf or averages, f"BestOf(J), not {objective}")
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
    must(type(recipe.augment) is AsItIs, f"rows as they are, not {recipe.augment}")
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
