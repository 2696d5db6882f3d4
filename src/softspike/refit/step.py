"""One step of least squares: the dictionary that fits the codes it is used with."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.data import Rows
from softspike.data.chunks import chunks
from softspike.generator import Generator, atoms_of

__all__ = ["Refit"]

_AT_A_TIME = 4096


class Refit(NamedTuple):
    """One step of least squares, from codes as they are."""

    atoms: Tensor  # (D, d)
    origin: Tensor  # (D,) what is left of rows on average, beside what the atoms explain; 0 where none is asked for
    unused: Tensor  # (d,) whether no row uses an atom
    longest: Tensor  # (≤ d, D), what is left of the rows of which most is left, the longest first

    @classmethod
    def of(
        cls,
        generator: Generator,
        code: Callable[[Tensor], Tensor],
        rows: Rows,
        from_origin: bool = True,
        told: Callable[[], None] = lambda: None,
    ) -> "Refit":
        """A + RᵀZ(ZᵀZ + κI)⁻¹: least squares of the rows X on their codes Z, where R = X − ZAᵀ; unless codes are to be
        those of X `from_origin`, Z has one more column, of ones.

        κ is the mean square of an active coefficient, as if each atom had been used once more, as it is: one that is
        never used stays where it is. `told` is called before each few thousand rows.
        """
        atoms, n = atoms_of(generator), generator.n_components
        sums, n_active, longest = _Sums.of(atoms, not from_origin), 0, atoms.new_zeros(0, atoms.shape[0])
        for _, x in chunks(rows, _AT_A_TIME):
            told()
            z = code(x)
            left = x - generator(z)
            sums.add(z, left)
            n_active += int((z != 0).sum())
            longest = _longest(torch.cat([longest, left]), n)
        used = sums.gram.diagonal()[:n]
        unused = used == 0
        used.add_(used.sum() / n_active if n_active else 1.0)
        moved = sums.solved().to(atoms)
        return cls(atoms + moved[:, :n], moved[:, n:].sum(-1), unused, longest)

    @property
    def n_unused(self) -> int:
        return int(self.unused.sum())

    def with_unused_anew(self) -> Tensor:
        """The atoms, with those that no row uses along the longest rows of R, one each: what no atom explains yet."""
        numbers = self.unused.nonzero()[: len(self.longest), 0]
        atoms = self.atoms.clone()
        atoms[:, numbers] = torch.nn.functional.normalize(self.longest[: len(numbers)].T, dim=0)
        return atoms


class _Sums(NamedTuple):
    """What least squares of R on Z needs of them, in float64."""

    gram: Tensor  # ZᵀZ
    match: Tensor  # RᵀZ

    @classmethod
    def of(cls, atoms: Tensor, with_ones: bool) -> "_Sums":
        n = atoms.shape[1] + with_ones
        return cls(*(atoms.new_zeros(rows, n, dtype=torch.float64) for rows in (n, len(atoms))))

    def add(self, z: Tensor, left: Tensor) -> None:
        z = torch.nn.functional.pad(z, (0, len(self.gram) - z.shape[1]), value=1.0)
        self.gram.add_((z.T @ z).double())
        self.match.add_((left.T @ z).double())

    def solved(self) -> Tensor:
        return torch.linalg.solve_ex(self.gram, self.match, left=False).result


def _longest(x: Tensor, count: int) -> Tensor:
    """At most `count` rows, the longest first; none that is zero, which has no direction."""
    lengths = x.norm(dim=-1)
    order = lengths.argsort(descending=True)[:count]
    return x[order[lengths[order] > 0]]
