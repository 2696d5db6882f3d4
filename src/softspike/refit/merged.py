"""Atoms that stand for two sources, and atoms that can be spared for the second one."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

__all__ = ["Merged"]

_ITERATIONS = 12  # of the power method: directions need not be exact, least squares comes after


class Merged(NamedTuple):
    """Where two sources are much alike, one atom may lie between them, at a ± δv with both, and leave ±δv·z of the
    rows that use it; another atom then explains next to nothing. a + δv and a − δv in place of these two."""

    atom: int  # a
    spare: int
    shift: Tensor  # (D,) δv
    gain: float  # twice what the shift explains of ‖R‖², less what the spare atom explains of ‖X‖² at most

    @classmethod
    def of(cls, codes: Tensor, left: Tensor) -> "list[Merged]":
        """Those that codes (n, d) and what they leave of the rows, (n, D), speak of; those that gain most come first.

        v is the direction in which most is left of the rows that use an atom, and λ how much, over the mean of all
        directions; Σz² of the spare atom is what it can explain. Atoms of the largest λ are paired with those of the
        least Σz², as long as 2λ is larger: others make up for half of what is spared."""
        size, active = codes.square().sum(0), (codes != 0).to(left)
        directions, most = _directions(left, active)
        rest = (active.T @ left.square().sum(-1) - most) / max(left.shape[1] - 1, 1)
        order, spares = (most - rest).argsort(descending=True), size.argsort()
        shifts = directions * (most / size.clamp_min(1e-12)).sqrt()[:, None]
        gains = 2 * (most - rest)[order] - size[spares]
        pairs = zip(order.tolist(), spares.tolist(), gains.tolist(), strict=True)
        found: list[Merged] = []
        for atom, spare, gain in pairs:
            if gain <= 0 or atom == spare:
                break
            found.append(cls(atom, spare, shifts[atom], gain))
        return found

    @staticmethod
    def mended(atoms: Tensor, found: "list[Merged]") -> Tensor:
        """a + δv for a, a − δv for the spare atom; the rest as it is; (D, d)."""
        moved = atoms.clone()
        for one in found:
            moved[:, one.atom], moved[:, one.spare] = atoms[:, one.atom] + one.shift, atoms[:, one.atom] - one.shift
        return moved


def _directions(left: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """For each atom the unit v (d, D) with the largest Σ(r·v)² over rows r that use it, and that sum (d,)."""
    random = Generator().manual_seed(0)
    v = torch.randn(active.shape[1], left.shape[1], generator=random).to(left)
    for _ in range(_ITERATIONS):
        v = torch.nn.functional.normalize((left @ v.T * active).T @ left, dim=-1)
    return v, ((left @ v.T).square() * active).sum(0)
