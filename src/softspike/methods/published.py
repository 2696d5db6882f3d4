"""The paper's linear study: its seven variational methods and FISTA, with the settings of its appendix.

Where the authors' published scripts depart from the paper's equations, the departure is a field of `Conventions`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import SGD

from softspike.encoder import MLPEncoder
from softspike.generator import Dictionary
from softspike.methods.plan import Built
from softspike.model import VariationalCoder
from softspike.objective import BestOf, Objective
from softspike.posterior import (
    GaussianPosterior,
    LaplacePosterior,
    Posterior,
    SpikeLogits,
    SpikeSlabPosterior,
    clipped_log_of_rate,
    logit_of_rate,
)
from softspike.prior import LaplacePrior, NormalPrior, Prior, SpikeSlabPrior
from softspike.schedule import Exponential, OneCycle, Ramp, StepDecay
from softspike.solver import FistaCoder
from softspike.threshold import (
    DoubledStraightThrough,
    FixedLevel,
    GammaLevel,
    Level,
    ShiftedSoft,
    StraightThrough,
    Threshold,
    ThresholdGradient,
)
from softspike.train import GroupRecipe, Recipe

__all__ = ["EQUATIONS", "PUBLISHED", "SCRIPTS", "Conventions", "Study", "build_published", "published_recipe"]


@dataclass(frozen=True)
class Conventions:
    """What the paper's text and the published scripts do differently."""

    gradient: ThresholdGradient  # through the threshold; the scripts' has dz/dμ = 2 on active units
    read_spike: Callable[[Tensor], SpikeLogits]  # how the head of the spike becomes a logit; the scripts feed log γ
    spike_slab_start: float  # ω of the spike-and-slab at step 0
    laplace_delay: int  # steps before the ω of the Laplacian rises
    norm: float = 1e-4  # κ of the term κ‖A‖² in the loss of the variational methods; both have it


SCRIPTS = Conventions(DoubledStraightThrough(), clipped_log_of_rate, spike_slab_start=0.1, laplace_delay=1500)
EQUATIONS = Conventions(StraightThrough(), logit_of_rate, spike_slab_start=0.0, laplace_delay=0)


@dataclass(frozen=True)
class Study:
    """The study's sizes. The defaults are the paper's: 300 epochs of 80,000 patches of 16×16, batches of 100.

    A shorter run anneals the dictionary's rate as far, only faster. Warm-ups and temperature keep their published
    steps as long as they end in the first quarter of the run, and are compressed into it where they would not.
    """

    n_features: int = 256
    n_components: int = 256
    n_steps: int = 240_000
    batch_size: int = 100
    widths: Sequence[int] = (512, 1024, 512, 256)
    beta: float = 1e-2
    dictionary_rate: float = 0.5  # on ½·SSE/B

    @property
    def noise_variance(self) -> float:
        """The weight β of the KL beside a mean squared error over D features is 2v/D for noise of variance v."""
        return self.beta * self.n_features / 2

    @property
    def pace(self) -> float:
        """This study's length in published ones."""
        return self.n_steps / 240_000

    @property
    def warm_up_pace(self) -> float:
        """The published warm-ups end after 6,000 steps."""
        return min(1.0, self.n_steps / (4 * 6000))

    def ramp(self, start: float, slope: float, delay: int = 0) -> Ramp:
        """A warm-up with the published slope per step and delay in steps."""
        return Ramp(start, slope / self.warm_up_pace, round(delay * self.warm_up_pace))


def published_recipe(study: Study) -> Recipe:
    """One joint step, two groups: Nesterov momentum for inference, plain SGD for the dictionary.

    The published dictionary step has the rate 0.5 on ½·SSE/B + κ‖A‖². That is D/2 times our loss as A sees it, so
    the rate here is D/2 times as large. It falls by 1 % in each of 300 epochs.
    """
    rate = study.dictionary_rate * study.n_features / 2
    groups = {
        "inference": GroupRecipe(OneCycle(1e-2, study.n_steps), {"momentum": 0.9, "nesterov": True}),
        "generator": GroupRecipe(StepDecay(rate, 0.99, max(round(800 * study.pace), 1))),
    }
    return Recipe(study.n_steps, study.batch_size, SGD, groups, log_every=1000, save_every=study.n_steps)


def _gaussian(study: Study, conventions: Conventions) -> tuple[Posterior, Prior]:
    return GaussianPosterior(study.widths[-1], study.n_components), NormalPrior(0.1)


def _laplacian(study: Study, conventions: Conventions) -> tuple[Posterior, Prior]:
    warm_up = study.ramp(0.1, 2e-4, conventions.laplace_delay)
    return LaplacePosterior(study.widths[-1], study.n_components, warm_up), LaplacePrior(0.1)


def _spike_and_slab(study: Study, conventions: Conventions) -> tuple[Posterior, Prior]:
    posterior = SpikeSlabPosterior(
        study.widths[-1],
        study.n_components,
        warm_up=study.ramp(conventions.spike_slab_start, 2e-4, 1500),
        temperature=Exponential(1.0, 0.9995 ** (1 / study.warm_up_pace), 0.5),
        read_spike=conventions.read_spike,
    )
    return posterior, SpikeSlabPrior(0.1, 0.1)


Base = Callable[[Study, Conventions], tuple[Posterior, Prior]]
Builder = Callable[[Study, Conventions, Objective], Built]


def _variational(base: Base, level_value: float | None = None, gamma: bool = False) -> Builder:
    """The base law alone, behind a threshold at a fixed level, or at a level with a Gamma law around it."""

    def builder(study: Study, conventions: Conventions, objective: Objective) -> Built:
        encoder = MLPEncoder(study.n_features, study.widths)
        posterior, prior = base(study, conventions)
        threshold = None
        if level_value is not None:
            level: Level = FixedLevel(level_value)
            if gamma:
                level = GammaLevel(encoder.width, study.n_components, level_value, shape=3.0)
            threshold = Threshold(ShiftedSoft, level, conventions.gradient)
        generator = Dictionary(study.n_features, study.n_components, frobenius=conventions.norm)
        coder = VariationalCoder(
            encoder, posterior, prior, generator, objective,
            threshold, beta=study.beta, level_beta=0.1 * study.beta,
        )  # fmt: skip
        return Built(coder, published_recipe(study))

    return builder


def _fista(study: Study, conventions: Conventions, objective: Objective) -> Built:
    """λ = 20 in the convention ½‖x − Az‖² + λ‖z‖₁, warmed up from a tenth; κ = 1e-3. It draws no samples."""
    generator = Dictionary(study.n_features, study.n_components, frobenius=1e-3)
    return Built(FistaCoder(generator, 20.0, study.ramp(0.1, 1e-4)), published_recipe(study))


PUBLISHED: dict[str, Builder] = {
    "fista": _fista,
    "gaussian": _variational(_gaussian),
    "laplacian": _variational(_laplacian),
    "spike-and-slab": _variational(_spike_and_slab),
    "thresholded-gaussian": _variational(_gaussian, 0.52),
    "thresholded-gaussian-gamma": _variational(_gaussian, 0.52, gamma=True),
    "thresholded-laplacian": _variational(_laplacian, 0.25),
    "thresholded-laplacian-gamma": _variational(_laplacian, 0.25, gamma=True),
}


def build_published(
    method: Builder,
    study: Study = Study(),
    conventions: Conventions = EQUATIONS,
    objective: Objective = BestOf(20),
    seed: int = 0,
) -> Built:
    """Call the builder with its own stream of random numbers, leaving the caller's untouched.

    >>> coder, recipe = build_published(PUBLISHED["thresholded-laplacian"], conventions=SCRIPTS, seed=1337)
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return method(study, conventions, objective)
