"""3  h → q(s|x): heads that return torch distributions."""

from softspike.posterior.around import GaussianAround
from softspike.posterior.beliefs import Beliefs, Posterior
from softspike.posterior.gaussian import GaussianPosterior
from softspike.posterior.laplace import LaplacePosterior
from softspike.posterior.noise import draw, noise, place
from softspike.posterior.spike_slab import SpikeSlab, SpikeSlabPosterior, log_of_rate, logit_of_rate

__all__ = [
    "Beliefs",
    "GaussianAround",
    "GaussianPosterior",
    "LaplacePosterior",
    "Posterior",
    "SpikeSlab",
    "SpikeSlabPosterior",
    "draw",
    "log_of_rate",
    "logit_of_rate",
    "noise",
    "place",
]
