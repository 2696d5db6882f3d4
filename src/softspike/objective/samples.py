"""Objectives over J samples: their mean, and the best of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Generator

from softspike.objective.evidence import Evidence, Noise, Terms

__all__ = ["BestOf", "BestOfPlain", "MeanOf", "Objective"]


class Objective(ABC):
    """From the evidence of a batch to the loss of each input."""

    @abstractmethod
    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms: ...


@dataclass(frozen=True)
class MeanOf(Objective):
    """(1/J)·Σⱼ ℓⱼ with ℓⱼ = misfitⱼ + β·KL: the β-ELBO."""

    n_samples: int = 1

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        z = evidence.codes(evidence.noise(self.n_samples, generator))
        misfit, kl = evidence.misfit(z).mean(0), evidence.kl()
        return Terms(misfit + evidence.beta * kl, misfit, kl, _count(z).mean(0), evidence.unit)


@dataclass(frozen=True)
class BestOf(Objective):
    """minⱼ ℓⱼ, the paper's max-ELBO.

    The KL does not depend on j, so the winner is the sample with the smallest misfit, and it alone carries gradient:
    J samples are scored without one, then the winner is built again from its noise. The scores come from the
    generator's preview, which for a generator with batch normalisation uses its running statistics: see
    `softspike.generator.ConvGenerator`.
    """

    n_samples: int = 20

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        noise = evidence.noise(self.n_samples, generator)
        if self.n_samples > 1:
            with torch.no_grad():
                codes = evidence.codes(noise)
            noise = noise.pick(evidence.scores(codes).argmin(0))
        return self.terms(evidence, noise)

    @staticmethod
    def terms(evidence: Evidence, noise: Noise) -> Terms:
        """The loss of the one draw (1, B, …) per input that this noise gives, whoever chose it."""
        z = evidence.codes(noise)
        misfit, kl = evidence.misfit(z)[0], evidence.kl()
        return Terms(misfit + evidence.beta * kl, misfit, kl, _count(z)[0], evidence.unit)


@dataclass(frozen=True)
class BestOfPlain(Objective):
    """The same loss with all J samples on the autograd tape: the reference that `BestOf` must equal."""

    n_samples: int = 20

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        z = evidence.codes(evidence.noise(self.n_samples, generator))
        misfit, winner = evidence.misfit(z).min(0)
        kl = evidence.kl()
        active = _count(z).gather(0, winner[None])[0]
        return Terms(misfit + evidence.beta * kl, misfit, kl, active, evidence.unit)


def _count(z: torch.Tensor) -> torch.Tensor:
    return (z.detach() != 0).sum(-1).to(z.dtype)
