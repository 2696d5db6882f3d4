"""The importance-weighted bound (Burda et al., 2016) with the true mixed densities."""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from softspike.objective.evidence import Evidence, Terms
from softspike.objective.samples import Objective

__all__ = ["ImportanceWeighted", "importance_weighted_bound"]


def importance_weighted_bound(log_weights: Tensor) -> Tensor:
    """log (1/J)·Σⱼ wⱼ from log weights (J, B): a lower bound on log p(x), in nats, that tightens with J."""
    return torch.logsumexp(log_weights, 0) - math.log(log_weights.shape[0])


@dataclass(frozen=True)
class ImportanceWeighted(Objective):
    """β·(−log (1/J)·Σⱼ p(x|zⱼ)p(zⱼ)/q(zⱼ|x)); the factor β puts it on the scale of the other objectives."""

    n_samples: int = 20

    def __call__(self, evidence: Evidence, generator: Generator | None = None) -> Terms:
        noise = evidence.noise(self.n_samples, generator)
        z = evidence.codes(noise)
        misfit = evidence.misfit(z)
        bound = importance_weighted_bound(evidence.log_weights_of(noise, z, misfit))
        with torch.no_grad():
            kl, active = evidence.kl(), (z != 0).sum(-1).to(z.dtype).mean(0)
        return Terms(-evidence.beta * bound, misfit.detach().mean(0), kl, active, evidence.unit)
