"""Correlation of codes with yes-or-no attributes."""

from torch import Tensor

__all__ = ["point_biserial", "published_point_biserial"]


def point_biserial(attribute: Tensor, values: Tensor) -> Tensor:
    """(m₁ − m₀)/s·√(n₁n₀)/N of an attribute (N,) in {0, 1} with each column of values (N, d); s with divisor N, (d,).

    Pearson's correlation of the two, and equal to `scipy.stats.pointbiserialr`. 0 where a column or the attribute
    never varies.
    """
    yes = attribute.bool()
    n, n_yes = len(yes), int(yes.sum())
    x = values.double()
    if n_yes in (0, n):
        return x.new_zeros(x.shape[1])
    gap = x[yes].mean(0) - x[~yes].mean(0)
    spread = x.std(0, correction=0)
    ratio = (gap / spread) * ((n_yes * (n - n_yes)) ** 0.5 / n)
    return ratio.where(spread > 0, 0.0)


def published_point_biserial(attribute: Tensor, values: Tensor) -> Tensor:
    """As the paper prints it, with √N where N belongs: √N too large, not confined to [−1, 1]."""
    return point_biserial(attribute, values) * len(values) ** 0.5
