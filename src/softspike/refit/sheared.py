"""Atoms that never come alone: a source that was learned as the difference from another one."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Sheared"]

_FEWEST = 20  # rows that use an atom, for its company to mean something
_MOSTLY = 0.5  # of the rows that use an atom use its companion …
_NEAR, _ALIKE = 0.1, 0.3  # … in a ratio within a tenth of the median in three of ten


class Sheared(NamedTuple):
    """Where a dictionary holds s₁ and b ∝ s₂ − c·s₁ in place of s₂, rows with s₂ are coded exactly, but with two
    components, z on b and c·z on s₁. No small move of atoms mends it; b + c·s₁ in place of b does."""

    atom: int  # b
    companion: int  # s₁
    ratio: float  # c
    sureness: float  # share of the rows with b whose code has s₁ as well, times that of those in this ratio

    @classmethod
    def of(cls, codes: Tensor) -> "list[Sheared]":
        """Those that codes (n, d) speak of, the surest first; of two that are each other's companions, the one that is
        less often alone. The companion is the atom whose share of the rows with b exceeds that of all rows most; the
        ratio is the median."""
        active = (codes != 0).to(torch.float32)
        n_rows = active.sum(0)
        together = (active.T @ active / n_rows.clamp_min(1)[:, None]).fill_diagonal_(0)
        companions = (together - active.mean(0)).fill_diagonal_(-1).argmax(1)
        share = together[torch.arange(len(n_rows), device=codes.device), companions]
        back = together[companions, torch.arange(len(n_rows), device=codes.device)]
        found = []
        for b in ((n_rows >= _FEWEST) & (share >= _MOSTLY) & (share >= back)).nonzero()[:, 0].tolist():
            ratio, alike = _usual_ratio(codes[:, int(companions[b])], codes[:, b])
            if alike >= _ALIKE:
                found.append(cls(b, int(companions[b]), ratio, float(share[b]) * alike))
        once = [one for one in found if cls.mirrored(one, found)]
        return sorted(once, key=lambda one: -one.sureness)

    @staticmethod
    def mended(atoms: Tensor, found: "list[Sheared]") -> Tensor:
        """b + c·s₁ for each b; the rest as it is; (D, d)."""
        moved = atoms.clone()
        for one in found:
            moved[:, one.atom] += one.ratio * atoms[:, one.companion]
        return moved

    def mirrored(self, others: "list[Sheared]") -> bool:
        """Whether this is the one to keep of two that name each other and are alone equally rarely."""
        return all((one.companion, one.atom) != (self.atom, self.companion) or self.atom < one.atom for one in others)


def _usual_ratio(numerator: Tensor, denominator: Tensor) -> tuple[float, float]:
    """The median of zⱼ/zᵢ over rows where neither is 0, and the share of these within a tenth of it."""
    both = (numerator != 0) & (denominator != 0)
    ratios = numerator[both] / denominator[both]
    median = ratios.median()
    return float(median), float(((ratios - median).abs() < _NEAR * median.abs()).double().mean())
