"""Reparameterised draws in two halves: parameter-free noise, then its place under a law.

Splitting them lets a step's randomness be a function of (seed, step), and lets the winner of J samples be built again,
with gradients, from its noise alone.
"""

from functools import singledispatch

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution, Gamma, HalfNormal, Laplace, Normal

from softspike.posterior.elementwise import elementwise
from softspike.posterior.standard import standard_gamma, standard_normal, standard_uniform

__all__ = ["draw", "noise", "place"]

# The published clamp of 1 − 2|u|: bounds a Laplace draw at 13.8 scales from its location.
_SMALLEST = 1e-6


@singledispatch
def noise(law: Distribution, n_samples: int, generator: Generator | None = None) -> Tensor:
    """The randomness of n_samples draws, (J, *batch_shape) or (J, B, …): samples first, batch second."""
    raise TypeError(f"cannot draw from {type(law).__name__}; register it with softspike.posterior.noise.register")


@singledispatch
def place(law: Distribution, noise: Tensor) -> Tensor:
    """The draws (J, *batch_shape) that this noise gives under the law, differentiable in the law's parameters."""
    raise TypeError(f"cannot draw from {type(law).__name__}; register it with softspike.posterior.place.register")


def draw(law: Distribution, n_samples: int, generator: Generator | None = None) -> Tensor:
    """n_samples reparameterised draws, (J, *batch_shape)."""
    return place(law, noise(law, n_samples, generator))


@noise.register
def _(law: Normal, n_samples: int, generator: Generator | None = None) -> Tensor:
    return standard_normal(law.loc, n_samples, generator)


@place.register
def _(law: Normal, noise: Tensor) -> Tensor:
    """s = μ + σε, ε ~ N(0, 1)."""
    return law.loc + law.scale * noise


@noise.register
def _(law: HalfNormal, n_samples: int, generator: Generator | None = None) -> Tensor:
    return standard_normal(law.scale, n_samples, generator)


@place.register
def _(law: HalfNormal, noise: Tensor) -> Tensor:
    """s = σ|ε|, ε ~ N(0, 1)."""
    return law.scale * noise.abs()


@noise.register
def _(law: Laplace, n_samples: int, generator: Generator | None = None) -> Tensor:
    """−sign(u)·log(1 − 2|u|), u ~ U(−½, ½): a standard Laplace variable."""
    u = standard_uniform(law.loc, n_samples, generator) - 0.5
    # Each pass over J×B×d numbers costs the same, so it works in place and copies the sign.
    return torch.rsub(u.abs(), 1, alpha=2).clamp_min_(_SMALLEST).log_().copysign_(u)


@place.register
def _(law: Laplace, noise: Tensor) -> Tensor:
    """s = μ + b·(standard Laplace noise)."""
    return law.loc + law.scale * noise


@noise.register
def _(law: Gamma, n_samples: int, generator: Generator | None = None) -> Tensor:
    """A standard Gamma(α, 1) variable; its dependence on α enters again in `place`."""
    value = standard_gamma(law.concentration, n_samples, generator)
    return value.clamp_min(torch.finfo(value.dtype).tiny)


@place.register
def _(law: Gamma, noise: Tensor) -> Tensor:
    """λ = g/β with the pathwise derivative dg/dα = −(∂F/∂α)/f of the Gamma distribution function F."""
    alpha = law.concentration
    slope = elementwise(torch._standard_gamma_grad, alpha.detach().expand_as(noise).contiguous(), noise)
    return (noise + slope * (alpha - alpha.detach())) / law.rate
