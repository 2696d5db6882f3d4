"""What the lasso's solvers share: the dictionary with what is known about it, the samples at hand, and the answer."""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Answer", "Atoms", "Signals"]

_WIDEST_GRAM = 2048  # atoms; a wider Gram matrix falls out of the cache, and products with the atoms are as cheap


class Atoms:
    """The dictionary A (D, d), where wide followed by columns of zeros: index d then stands for no atom."""

    def __init__(self, atoms: Tensor, n_samples: int):
        self.n, self.wide = atoms.shape[1], atoms.shape[1] > 2 * atoms.shape[0]
        padding = 16 - self.n % 16 if self.wide else 0
        self.columns = torch.cat([atoms, atoms.new_zeros(len(atoms), padding)], dim=1)
        self.rows = self.columns.T.contiguous()
        # AᵀA costs as much as two products with A for d/2 samples.
        worth_it = self.n <= _WIDEST_GRAM and self.n <= 4 * n_samples
        self.gram = self.rows @ self.columns if worth_it else None
        curvature = atoms.square().sum(0).mean()
        self.typical = 2 * curvature  # of ½‖x − Az‖² along a sparse direction
        self.least = 0.05 * curvature

    def bend(self, move: Tensor) -> Tensor:
        """s ↦ AᵀAs, in one product or in two, whichever is cheaper."""
        if self.gram is not None and not self.wide:
            return move @ self.gram
        return (move @ self.rows) @ self.columns


class Signals(NamedTuple):
    """Samples that are still being solved, in units in which λ = 1."""

    places: Tensor  # (B,) their rows in the answer
    x: Tensor  # (B, D)
    energy: Tensor  # ‖x‖², (B, 1)
    floor: Tensor  # the gap to reach, (B, 1)
    correlation: Tensor  # Aᵀx, (B, d)

    @staticmethod
    def of(places: Tensor, x: Tensor, atoms: Atoms, tolerance: float) -> "Signals":
        energy = x.square().sum(-1, keepdim=True)
        return Signals(places, x, energy, tolerance * (0.5 * energy), x @ atoms.columns)

    def at(self, rows: Tensor) -> "Signals":
        return Signals(*(values.index_select(0, rows) for values in self))


class Answer(NamedTuple):
    """Of all samples, filled in as they are solved."""

    codes: Tensor  # (n, d)
    gap: Tensor  # (n,) over ½‖x‖²
    steps: Tensor  # (n,)

    @staticmethod
    def empty(x: Tensor, n_components: int) -> "Answer":
        return Answer(
            x.new_zeros(len(x), n_components),
            x.new_full((len(x),), torch.inf),
            torch.zeros(len(x), dtype=torch.long, device=x.device),
        )

    @staticmethod
    def starting(codes: Tensor) -> "Answer":
        """The codes given, to begin with."""
        return Answer.empty(codes[:, 0], 0)._replace(codes=codes.clone(memory_format=torch.contiguous_format))

    def store(self, signals: Signals, codes: Tensor, gap: Tensor, steps: int) -> None:
        self.codes.index_copy_(0, signals.places, codes[:, : self.codes.shape[1]])
        self.gap.index_copy_(0, signals.places, (gap / (0.5 * signals.energy).clamp_min(1e-30))[:, 0])
        self.steps.index_fill_(0, signals.places, steps)
