"""3  h → q(s|x): heads that return torch distributions."""

from softspike.posterior.around import GaussianAround
from softspike.posterior.beliefs import Beliefs, Posterior
from softspike.posterior.gaussian import GaussianPosterior
from softspike.posterior.laplace import LaplacePosterior
from softspike.posterior.noise import draw, noise, place
from softspike.posterior.spike_slab import (
    SpikeLogits,
    SpikeSlab,
    SpikeSlabPosterior,
    clipped_log_of_rate,
    log_of_rate,
    logit_of_rate,
)
from softspike.posterior.standard import Generators, each_of

__all__ = [
    "Beliefs",
    "GaussianAround",
    "GaussianPosterior",
    "Generators",
    "LaplacePosterior",
    "Posterior",
    "SpikeLogits",
    "SpikeSlab",
    "SpikeSlabPosterior",
    "clipped_log_of_rate",
    "draw",
    "each_of",
    "log_of_rate",
    "logit_of_rate",
    "noise",
    "place",
]
