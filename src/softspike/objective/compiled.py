"""The best of J samples in compiled code on a CPU: none of them is stored, and the gradient is written out."""

from typing import Any

import torch
from torch import Generator, Tensor
from torch.autograd.function import once_differentiable
from torch.distributions import Gamma, Laplace, Normal

from softspike.generator import LinearGenerator
from softspike.kernels.compiled import available
from softspike.objective.evidence import Evidence, Noise, Terms
from softspike.threshold import SLOPES, FixedLevel, GammaLevel, ShiftedSoft

__all__ = ["best_noise", "best_terms", "draw_key", "finds", "knows", "takes", "worth"]

_LEAST = 2**14  # numbers to draw, below which a step takes less time than loading compiled code


def takes(evidence: Evidence, n_samples: int) -> bool:
    """Whether compiled code knows this model, and the batch is worth it."""
    return worth(n_samples, len(evidence.x), evidence.generator.n_components) and knows(evidence)


def worth(n_samples: int, n_rows: int, n_components: int) -> bool:
    """Whether so many draws take longer than what it costs to have them compiled, and there are counters for them."""
    return n_samples * n_rows * n_components >= _LEAST and n_rows * n_components < 2**32


def knows(evidence: Evidence) -> bool:
    """Whether there is compiled code for this model with its gradient: the paper's with a fixed level."""
    law, settled, prior, threshold = *evidence.beliefs, evidence.prior, evidence.threshold
    return (
        _draws(evidence)
        and type(threshold.level) is FixedLevel  # type: ignore[union-attr]
        and type(threshold.gradient) in SLOPES  # type: ignore[union-attr]
        and type(law) is type(settled) is type(prior)
        and law.loc is settled.loc  # type: ignore[attr-defined]
        and not prior.batch_shape
        and not prior.loc  # type: ignore[attr-defined]
    )


def finds(evidence: Evidence, n_samples: int) -> bool:
    """Whether compiled code draws the samples of this model, whose levels have a law, and the batch is worth it."""
    levels = type(evidence.level) is Gamma and type(evidence.threshold.level) is GammaLevel  # type: ignore[union-attr]
    return levels and worth(n_samples, len(evidence.x), evidence.generator.n_components) and _draws(evidence)


def _draws(evidence: Evidence) -> bool:
    """Shifted soft-thresholds of Laplace or Normal variables, a linear generator, float32 rows on a CPU."""
    x, law, generator = evidence.x, evidence.beliefs.sampled, evidence.generator
    return (
        available()
        and x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.ndim == 2
        and not torch._C._are_functorch_transforms_active()  # several replicas at once: each draws from its generator
        and type(law) in (Laplace, Normal)
        and evidence.threshold is not None
        and evidence.threshold.law_type is ShiftedSoft
        and isinstance(generator, LinearGenerator)
        and type(generator).forward is LinearGenerator.forward
    )


def draw_key(generator: Generator | None = None) -> int:
    """The key of one step's counter-based random numbers."""
    return int(torch.randint(2**62, (), generator=generator))


def best_terms(evidence: Evidence, n_samples: int, generator: Generator | None = None) -> Terms:
    """What `BestOf` returns, from the counter-based random numbers of one key."""
    law, settled, threshold = evidence.beliefs.sampled, evidence.beliefs.settled, evidence.threshold
    assert isinstance(law, Laplace | Normal)
    assert isinstance(evidence.generator, LinearGenerator)
    assert threshold is not None
    constants = threshold.level.value, evidence.prior.scale, n_samples, draw_key(generator), isinstance(law, Laplace)  # type: ignore[attr-defined]
    misfit, kl, active = _Best.apply(
        law.loc, law.scale, settled.scale, evidence.generator.atoms, evidence.x,  # type: ignore[attr-defined]
        *constants, SLOPES[type(threshold.gradient)],
    )  # fmt: skip
    return Terms(misfit + evidence.beta * kl, misfit, kl, active, evidence.unit)


def best_noise(evidence: Evidence, n_samples: int, generator: Generator | None = None) -> Noise:
    """The noise (1, B, d) of the best sample of each input and of its levels, from the random numbers of one key."""
    from softspike.kernels.cpu import levels  # numba takes a second to load

    law, level = evidence.beliefs.sampled, evidence.level
    assert isinstance(law, Laplace | Normal)
    assert isinstance(evidence.generator, LinearGenerator)
    assert level is not None
    noise, gamma = levels.best_noise(
        evidence.x, law.loc, law.scale, level.concentration, level.rate, evidence.generator.atoms, n_samples,
        draw_key(generator), isinstance(law, Laplace),
    )  # fmt: skip
    return Noise(noise[None], gamma[None])


class _Best(torch.autograd.Function):
    """Misfit, KL and active count, each (B,), of the best of J samples.

    With r = −(2/D)(x − Az):  ∂misfit/∂A = rzᵀ and ∂misfit/∂z = Aᵀr, which goes on to the location and scale of z by the
    slopes of the threshold's gradient. The slopes of the KL are known since the forward pass.
    """

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, scale: Tensor, settled: Tensor, atoms: Tensor, x: Tensor, level: Tensor,
        prior: Tensor, n_samples: int, key: int, laplace: bool, slopes: tuple[float, float],
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        from softspike.kernels.cpu.winner import winner_of  # numba takes a second to load

        winner = winner_of(x, location, scale, settled, level, prior, atoms, n_samples, key, laplace)
        ctx.save_for_backward(atoms, winner.rest, winner.noise, winner.codes, winner.by_location, winner.by_scale)
        ctx.slopes = slopes
        ctx.mark_non_differentiable(winner.active)
        return winner.misfit, winner.kl, winner.active

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_misfit: Tensor, by_kl: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        from softspike.kernels.cpu.winner import slopes_of

        atoms, rest, noise, codes, by_location, by_scale = ctx.saved_tensors
        r = rest * (by_misfit * (-2 / rest.shape[-1]))[:, None]
        location, scale, settled = slopes_of(noise, codes, by_location, by_scale, r @ atoms, by_kl, *ctx.slopes)
        return location, scale, settled, r.T @ codes, *[None] * 7
