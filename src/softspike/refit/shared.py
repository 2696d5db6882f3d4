"""An atom that all others have a part of: a source that was learned into every other one."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Shared"]

_MOSTLY = 0.5  # of all rows use such an atom …
_SPARED = 0.2  # … and so many would not, if the others were without it
_NEXT_TO = 0.05  # of the root mean square of its coefficients is as good as 0
_ITERATIONS = 30


class Shared(NamedTuple):
    """Where a dictionary holds aⱼ = sⱼ − vⱼ·s for many sources sⱼ beside s itself, every row with one of them is coded
    exactly, but with s as well: its coefficient is that of s plus Σ vⱼzⱼ, and hardly ever 0. aⱼ + vⱼ·s in place of each
    aⱼ mends it, and no small move does. (`Sheared` finds a single one by its ratio to s, which a sum does not have.)"""

    atom: int  # s
    parts: Tensor  # (d,) v, 0 for s itself
    spared: float  # share of the rows that need s no more

    @classmethod
    def of(cls, codes: Tensor) -> "list[Shared]":
        """The atom of which the codes (n, d) say so, or none: of the one that most rows use, if more than half do.

        v is where Σ|z − Σ vⱼzⱼ| over rows is least, which is 0 in as many rows as can be."""
        used = (codes != 0).to(torch.float32).mean(0)
        atom = int(used.argmax())
        if used[atom] <= _MOSTLY or int((used > 0).sum()) < 2:  # where it is alone, nothing has a part of it
            return []
        value, others = codes[:, atom].double(), codes.double()
        others[:, atom] = 0
        parts, near = _least_absolute(value, others), _NEXT_TO * value.square().mean().sqrt()
        spared = float(((value - others @ parts).abs() < near).double().mean() - (value.abs() < near).double().mean())
        return [cls(atom, parts.to(codes), spared)] if spared >= _SPARED else []

    def mended(self, atoms: Tensor) -> Tensor:
        """aⱼ + vⱼ·s for each atom that has a part of s; (D, d)."""
        return atoms + atoms[:, self.atom, None] * self.parts


def _least_absolute(value: Tensor, others: Tensor) -> Tensor:
    """argmin over v of Σ|value − others·v|, by least squares with weights 1/|what is left|, again and again."""
    parts, smallest = others.new_zeros(others.shape[1]), 1e-3 * value.abs().mean()
    for _ in range(_ITERATIONS):
        weighted = others / ((value - others @ parts).abs() + smallest)[:, None]
        gram = weighted.T @ others
        gram.diagonal().add_(1e-6 * gram.diagonal().mean())
        parts = torch.linalg.solve(gram, weighted.T @ value)
    return parts
