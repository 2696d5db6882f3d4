"""The activation probability when the level itself is a Gamma variable."""

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Gamma, Laplace

from softspike.threshold.hard import PositiveHard
from softspike.threshold.law import ThresholdedLaw
from softspike.threshold.partial import reflected, upper_partial_moments
from softspike.threshold.shifted import ShiftedSoft

__all__ = ["activity_under_gamma"]


def activity_under_gamma(law: ThresholdedLaw, level: Gamma) -> Tensor:
    """γ = P(|r| > λ) with λ ~ Gamma(α, β) and r the variable that `law` compares with it (the noise, or s itself).

    Shifted Laplace: (1 + 1/(bβ))^(−α). Otherwise by quadrature over whichever of r and λ varies less, to 1e-3. A
    one-sided law asks for r > λ.
    """
    r, alpha, beta = law.compared, level.concentration, level.rate
    if isinstance(law, ShiftedSoft) and isinstance(r, Laplace):
        return torch.exp(-alpha * torch.log1p(1 / (r.scale * beta)))
    sharp = (alpha > 2) & (alpha.sqrt() / beta < r.scale)
    return torch.where(sharp, _over_levels(law, level), _over_compared(law, level)).clamp(0, 1)


def _over_compared(law: ThresholdedLaw, level: Gamma, n_nodes: int = 32) -> Tensor:
    """E_r[F(|r|)], F the Gamma distribution function: Gauss–Legendre over the quantiles of r on each side of 0.

    F(|r|) has its kink at 0, hence the two sides.
    """
    r = law.compared
    total = torch.zeros_like(r.loc)
    points, weights = np.polynomial.legendre.leggauss(n_nodes)
    for side in (reflected(r),) if isinstance(law, PositiveHard) else (r, reflected(r)):
        share = upper_partial_moments(reflected(side), torch.zeros_like(r.loc)).probability  # P(side < 0)
        for point, weight in zip(points, weights, strict=True):
            size = -side.icdf(0.5 * (point + 1) * share)
            inside = torch.special.gammainc(level.concentration, level.rate * size.clamp_min(0))
            total = total + 0.5 * weight * share * inside
    return total


def _over_levels(law: ThresholdedLaw, level: Gamma, n_nodes: int = 33, reach: float = 9.0) -> Tensor:
    """E_λ[P(|r| > λ)]: the trapezoid rule in log λ, nine standard deviations 1/√α to either side of log(α/β).

    There the density of log λ is proportional to exp(α(u − eᵘ)), u = log λ − log(α/β).
    """
    r, alpha = law.compared, level.concentration
    total = weights = torch.zeros_like(r.loc)
    for x in np.linspace(-reach, reach, n_nodes):
        u = float(x) / alpha.sqrt()
        weight = torch.exp(alpha * (u - torch.expm1(u)))
        at = level.mean * u.exp()
        outside = type(law)(law.base, at, validate_args=False).activation_probability
        total, weights = total + weight * outside, weights + weight
    return total / weights
