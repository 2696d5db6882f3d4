"""Intervals that cover: one number that scales the posterior's standard deviation, found by simulation."""

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Generator, Tensor

from softspike.posterior import SpikeSlab, draw
from softspike.threshold import ThresholdedLaw

if TYPE_CHECKING:
    from softspike.model import VariationalCoder

__all__ = ["Simulated", "interval_factor", "simulate"]

_MOST_ROWS = 2048


class Simulated(NamedTuple):
    """Data whose codes are known."""

    x: Tensor  # (B, D)
    codes: Tensor  # (B, d), zero off the support


@torch.no_grad()
def interval_factor(coder: "VariationalCoder", x: Tensor, level: float = 0.9) -> Tensor:
    """f such that code ± Φ⁻¹((1 + level)/2)·f·√Var q covers `level` of the active coefficients of simulated data.

    Codes z are drawn from the prior, each component as often as it is active at x, and x′ = Az + √v·ε, with v the
    variance per degree of freedom that codes of x leave unexplained. Then x′ is coded and its code compared with z.
    No true code is needed; what f puts right is that q is factorial, one pass is not the best code, and the code is
    refitted. f is 1 for the laws and priors of the paper, which do not speak of z itself.
    """
    made = simulate(coder, x[:_MOST_ROWS])
    if made is None:
        return x.new_ones(())
    return _factor(coder.code(made.x), coder.law(made.x).variance.sqrt(), made.codes, level)


@torch.no_grad()
def simulate(coder: "VariationalCoder", x: Tensor, seed: int = 0) -> Simulated | None:
    """As many inputs as x (B, D) from the model itself: x′ = Az + √v·ε, z of the prior, its rates those at x.

    v is the variance per degree of freedom that codes of x leave unexplained. None for laws and priors that do not
    speak of z itself.
    """
    law, prior = coder.law(x), coder.prior.law
    if not (isinstance(law, ThresholdedLaw) and isinstance(prior, SpikeSlab)):
        return None
    random = Generator(device=x.device).manual_seed(seed)
    code = coder.code(x)
    freedom = (x.shape[-1] - (code != 0).sum(-1).to(x.dtype).mean()).clamp_min(1)
    noise_variance = (x - coder.generator(code)).square().sum(-1).mean() / freedom
    rates = law.activation_probability.mean(0)
    chance = torch.rand(code.shape, generator=random, dtype=x.dtype, device=x.device)
    truth = draw(prior.slab.expand(code.shape), 1, random)[0] * (chance < rates)
    noise = torch.randn(x.shape, generator=random, dtype=x.dtype, device=x.device)
    return Simulated(coder.generator(truth) + noise_variance.sqrt() * noise, truth)


def _factor(code: Tensor, spread: Tensor, truth: Tensor, level: float) -> Tensor:
    """The `level` quantile of |code − truth|/spread over non-zeros of the code, over that of a standard normal."""
    active = code != 0
    if not bool(active.any()):
        return spread.new_ones(())
    ratio = (code - truth)[active].abs() / spread[active].clamp_min(torch.finfo(spread.dtype).tiny)
    rank = min(math.ceil(level * len(ratio)), len(ratio))
    return ratio.kthvalue(rank).values / (math.sqrt(2) * torch.special.erfinv(ratio.new_tensor(level)))
