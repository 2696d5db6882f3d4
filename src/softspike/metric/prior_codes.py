"""Codes that have seen no data: draws from a model's prior, for measures that should tell the two apart."""

from torch import Generator, Tensor

from softspike.model import VariationalCoder
from softspike.posterior import SpikeSlab, draw
from softspike.threshold import GammaLevel

__all__ = ["prior_codes"]


def prior_codes(coder: VariationalCoder, n: int, random: Generator | None = None) -> Tensor:
    """n draws of z from the prior, (n, d): p(s) behind the threshold at λ₀, or at λ ~ p(λ), or p(z) itself."""
    d, prior = coder.generator.n_components, coder.prior.law
    s = draw(prior.expand((d,)), n, random)
    if coder.threshold is None or isinstance(prior, SpikeSlab):
        return s
    level = coder.threshold.level
    value = draw(level.prior.expand((d,)), n, random) if isinstance(level, GammaLevel) else level.value
    return coder.threshold.law(prior, value).transform(s)
