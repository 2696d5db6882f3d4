"""Objectives over J samples: their mean, and the best of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from softspike.objective.compiled import best_noise, best_terms, finds, takes
from softspike.objective.evidence import Evidence, Noise, Terms

__all__ = ["BestOf", "BestOfPlain", "MeanOf", "Objective"]

# Samples drawn and scored together: on a CPU few enough for the cache, many enough for a matrix product; on a GPU,
# where each part costs its launches, as many as hold so many numbers.
_AT_ONCE, _NUMBERS = 4, 2**28


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
    J samples are drawn and scored without one, a few at a time, and only the noise of the best so far is kept. Then
    the winner is built again from its noise, so memory does not grow with J beyond that of a few. The scores come from
    the generator's preview, which for a generator with batch normalisation uses its running statistics: see
    `softspike.generator.ConvGenerator`. On a CPU, batches of the paper's models go through compiled code, with random
    numbers of its own; `search_plainly` is the reference.
    """

    n_samples: int = 20

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        if takes(evidence, self.n_samples):
            return best_terms(evidence, self.n_samples, generator)
        return self.terms(evidence, self.search(evidence, generator))

    def search(self, evidence: Evidence, generator: Generator | None = None) -> Noise:
        """The noise (1, B, …) of the best sample of each input."""
        if finds(evidence, self.n_samples):
            return best_noise(evidence, self.n_samples, generator)
        return self.search_plainly(evidence, generator)

    def search_plainly(self, evidence: Evidence, generator: Generator | None = None) -> Noise:
        """The same, a few samples at a time: the reference."""
        parts = draws(evidence, self.n_samples, generator)
        best = next(parts)
        if self.n_samples > 1:
            with torch.no_grad():
                best, least = _winner(evidence, best)
                for part in parts:
                    challenger, misfit = _winner(evidence, part)
                    better = misfit < least
                    best, least = challenger.where(better, best), torch.where(better, misfit, least)
        return best

    @staticmethod
    def terms(evidence: Evidence, noise: Noise) -> Terms:
        """The loss of the one draw (1, B, …) per input that this noise gives, whoever chose it."""
        z = evidence.codes(noise)
        misfit, kl = evidence.misfit(z)[0], evidence.kl()
        return Terms(misfit + evidence.beta * kl, misfit, kl, _count(z)[0], evidence.unit)


def draws(evidence: Evidence, n_samples: int, generator: Generator | None = None) -> Iterator[Noise]:
    """The noise of J samples, a few at a time. Random numbers depend on this order, so all objectives share it."""
    at_once = _at_once(evidence)
    for first in range(0, n_samples, at_once):
        yield evidence.noise(min(at_once, n_samples - first), generator)


def _at_once(evidence: Evidence) -> int:
    """How many samples make a part, by the shapes and the device alone."""
    if not evidence.x.is_cuda:
        return _AT_ONCE
    widest = max(evidence.x[0].numel(), evidence.generator.n_components)
    return max(_NUMBERS // (len(evidence.x) * widest), 1)


def _winner(evidence: Evidence, noise: Noise) -> tuple[Noise, Tensor]:
    """The noise of the best of these samples, (1, B, …), and its misfit, (B,)."""
    misfit, winner = evidence.scores(evidence.values(noise)).min(0)
    return noise.pick(winner), misfit


@dataclass(frozen=True)
class BestOfPlain(Objective):
    """The same loss with all J samples on the autograd tape: the reference that `BestOf` must equal."""

    n_samples: int = 20

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        z = evidence.codes(Noise.joined(list(draws(evidence, self.n_samples, generator))))
        misfit, winner = evidence.misfit(z).min(0)
        kl = evidence.kl()
        active = _count(z).gather(0, winner[None])[0]
        return Terms(misfit + evidence.beta * kl, misfit, kl, active, evidence.unit)


def _count(z: torch.Tensor) -> torch.Tensor:
    return (z.detach() != 0).sum(-1).to(z.dtype)
