"""One step of least squares: the dictionary that fits the codes it is used with."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.data import Rows
from softspike.data.chunks import chunks
from softspike.generator import atoms_of
from softspike.model import VariationalCoder

__all__ = ["Refit"]

_AT_A_TIME = 4096


class Refit(NamedTuple):
    """One step of least squares, from codes as they are."""

    atoms: Tensor  # (D, d)
    unused: Tensor  # (d,) whether no row uses an atom
    longest: Tensor  # (≤ d, D), what is left of the rows of which most is left, the longest first

    @classmethod
    def of(cls, coder: VariationalCoder, rows: Rows, told: Callable[[], None] = lambda: None) -> "Refit":
        """A + RᵀZ(ZᵀZ + κI)⁻¹: least squares of the rows X on their codes Z, where R = X − ZAᵀ.

        κ is the mean square of an active coefficient, as if each atom had been used once more, as it is: one that is
        never used stays where it is. `told` is called before each few thousand rows.
        """
        atoms = atoms_of(coder.generator)
        gram = atoms.new_zeros((atoms.shape[1],) * 2, dtype=torch.float64)
        match, n_active, longest = torch.zeros_like(atoms, dtype=torch.float64), 0, atoms.new_zeros(0, atoms.shape[0])
        for _, x in chunks(rows, _AT_A_TIME):
            told()
            z = coder.code(x)
            left = x - coder.generator(z)
            gram += (z.T @ z).double()
            match += (left.T @ z).double()
            n_active += int((z != 0).sum())
            longest = _longest(torch.cat([longest, left]), atoms.shape[1])
        unused = gram.diagonal() == 0
        gram.diagonal().add_(gram.diagonal().sum() / n_active if n_active else 1.0)
        moved = torch.linalg.solve_ex(gram, match, left=False).result.to(atoms)
        return cls(atoms + moved, unused, longest)

    @property
    def n_unused(self) -> int:
        return int(self.unused.sum())

    def with_unused_anew(self) -> Tensor:
        """The atoms, with those that no row uses along the longest rows of R, one each: what no atom explains yet."""
        numbers = self.unused.nonzero()[: len(self.longest), 0]
        atoms = self.atoms.clone()
        atoms[:, numbers] = torch.nn.functional.normalize(self.longest[: len(numbers)].T, dim=0)
        return atoms


def _longest(x: Tensor, count: int) -> Tensor:
    """At most `count` rows, the longest first; none that is zero, which has no direction."""
    lengths = x.norm(dim=-1)
    order = lengths.argsort(descending=True)[:count]
    return x[order[lengths[order] > 0]]
