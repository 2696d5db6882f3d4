"""What all rows share, and sums of a few non-negative parts cannot be."""

import math

from softspike.data import RunningMoments
from softspike.notice import notice

__all__ = ["largest_mean", "tell_of_offset"]


def largest_mean(n_active: float) -> float:
    """√(2K): how many standard deviations the mean of a column is at most, without an offset.

    xⱼ = Σᵢ aᵢⱼ·zᵢ of independent zᵢ ≥ 0 that are on with probabilities pᵢ ≤ ½, K = Σpᵢ. By Cauchy and Schwarz
    |E xⱼ| ≤ √K·√(Σ aᵢⱼ²·E zᵢ²), and var xⱼ ≥ ½·Σ aᵢⱼ²·E zᵢ².
    """
    return math.sqrt(2 * n_active)


def tell_of_offset(moments: RunningMoments, n_active: float) -> None:
    """A notice where half of the columns are farther from 0 than that."""
    varies = moments.variance > 0
    if not bool(varies.any()):
        return
    ratio = float((moments.mean[varies].abs() / moments.variance[varies].sqrt()).median())
    if ratio > largest_mean(n_active):
        notice(
            f"positive is True, and half of the columns have a mean of {ratio:.1f} standard deviations or more, where "
            f"sums of {n_active:g} non-negative components have {largest_mean(n_active):.1f} at most: subtract the "
            "offset that all rows share, or components must stand for it"
        )
