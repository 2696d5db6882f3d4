"""The best of J samples in compiled code on a CPU: none of them is stored, and the winner's gradient is written out."""

from typing import Any

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable
from torch.distributions import Laplace, Normal

from softspike.generator import LinearGenerator
from softspike.kernels.compiled import available
from softspike.objective.evidence import Evidence, Terms
from softspike.threshold import SLOPES, FixedLevel, ShiftedSoft

__all__ = ["best_terms", "takes"]

_LEAST = 2**16  # numbers to draw, below which a step takes less time than loading compiled code


def takes(evidence: Evidence, n_samples: int) -> bool:
    """Whether compiled code knows this model, the paper's with a fixed level, and the batch is worth it."""
    x, law, threshold = evidence.x, evidence.beliefs.sampled, evidence.threshold
    return (
        available()
        and n_samples > 1
        and n_samples * law.batch_shape.numel() >= _LEAST
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.ndim == 2
        and type(law) in (Laplace, Normal)
        and threshold is not None
        and threshold.law_type is ShiftedSoft
        and type(threshold.level) is FixedLevel
        and type(threshold.gradient) in SLOPES
        and isinstance(evidence.generator, LinearGenerator)
        and type(evidence.generator).forward is LinearGenerator.forward
    )


def best_terms(evidence: Evidence, n_samples: int, generator: Generator | None = None) -> Terms:
    """What `BestOf` returns, from the counter-based random numbers of one key."""
    from softspike.kernels.cpu.search import best_of  # numba takes a second to load

    law, threshold, dictionary = evidence.beliefs.sampled, evidence.threshold, evidence.generator
    assert isinstance(law, Laplace | Normal)
    assert isinstance(dictionary, LinearGenerator)
    assert threshold is not None
    key = int(torch.randint(2**62, (), generator=generator))
    level = threshold.level.value.expand(law.loc.shape[-1])
    best = best_of(evidence.x, law.loc, law.scale, level, dictionary.atoms, n_samples, key, isinstance(law, Laplace))
    misfit = _Winner.apply(law.loc, law.scale, dictionary.atoms, *best, *SLOPES[type(threshold.gradient)])
    kl = evidence.kl()
    active = (best.codes != 0).sum(-1).to(misfit.dtype)
    return Terms(misfit + evidence.beta * kl, misfit, kl, active, evidence.unit)


class _Winner(torch.autograd.Function):
    """mean over features of (x − Az)², (B,), of codes that were found without gradients.

    With r = −(2/D)(x − Az):  ∂/∂A = rzᵀ and ∂/∂z = Aᵀr, which goes on to the location and scale of z by the two slopes
    of the threshold's gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, scale: Tensor, atoms: Tensor, noise: Tensor, codes: Tensor, rest: Tensor,
        active_slope: float, silent_slope: float,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(atoms, noise, codes, rest)
        ctx.slopes = active_slope, silent_slope
        return rest.square().mean(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        atoms, noise, codes, rest = ctx.saved_tensors
        active_slope, silent_slope = ctx.slopes
        r = rest * (grad * (-2 / rest.shape[-1]))[:, None]
        slope = r @ atoms
        active = codes != 0
        if silent_slope != 1:
            slope = torch.where(active, slope, silent_slope * slope)
        location = slope if active_slope == 1 else torch.where(active, active_slope * slope, slope)
        return location, slope * noise, r.T @ codes, None, None, None, None, None
