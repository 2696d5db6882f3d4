"""Intervals that cover: one number that scales the posterior's standard deviation, found by simulation."""

import math
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from softspike.posterior import draw
from softspike.threshold import ThresholdedLaw

if TYPE_CHECKING:
    from softspike.model import VariationalCoder

__all__ = ["interval_factor"]

_MOST_ROWS = 2048


@torch.no_grad()
def interval_factor(coder: "VariationalCoder", x: Tensor, level: float = 0.9) -> Tensor:
    """f such that code ± Φ⁻¹((1 + level)/2)·f·√Var q covers `level` of the active coefficients of simulated data.

    Draws z of q(z|x) at rows that training never saw play the truth: x′ = Az + √v·ε, with v the variance per degree
    of freedom that codes of x leave unexplained. Then x′ is coded and its code compared with z. No true code is needed;
    what f puts right is that q is factorial, one pass is not the best code, and the code is refitted.
    """
    x = x[:_MOST_ROWS]
    random = Generator(device=x.device).manual_seed(0)
    law, z, n_features = coder.law(x), coder.code(x), x.shape[-1]
    freedom = (n_features - (z != 0).sum(-1).to(x.dtype).mean()).clamp_min(1)
    noise_variance = (x - coder.generator(z)).square().sum(-1).mean() / freedom
    thresholded = isinstance(law, ThresholdedLaw)
    truth = law.transform(draw(law.base, 1, random)[0]) if thresholded else draw(law, 1, random)[0]
    noise = torch.randn(x.shape, generator=random, dtype=x.dtype, device=x.device)
    simulated = coder.generator(truth) + noise_variance.sqrt() * noise
    code, spread = coder.code(simulated), coder.law(simulated).variance.sqrt()
    active = code != 0
    if not bool(active.any()):
        return torch.ones_like(noise_variance)
    ratio = (code - truth)[active].abs() / spread[active].clamp_min(torch.finfo(x.dtype).tiny)
    rank = min(math.ceil(level * len(ratio)), len(ratio))
    reach = math.sqrt(2) * float(torch.special.erfinv(torch.tensor(level, dtype=torch.float64)))
    return ratio.kthvalue(rank).values / reach
