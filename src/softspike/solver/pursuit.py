"""Orthogonal matching pursuit from inner products alone (Rubinstein et al., 2008), many samples in step."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from softspike.solver.largest import largest

__all__ = ["Chase", "Pursuit", "Unit"]

_GROW = 32  # atoms by which the inverses grow: products with narrower matrices are slower
_WIDEST_GRAM = 8192  # atoms: a quarter of a gigabyte


class Pursuit(NamedTuple):
    """B pursuits of up to K atoms."""

    chosen: Tensor  # (B, K) atoms in the order taken, the index d standing for none
    coefficients: Tensor  # (B, K) least squares on all that were taken
    projections: Tensor  # (B, K) x in the orthonormal basis that they span, in order
    energies: Tensor  # (B, K) ‖r‖² before each atom was taken, 0 where none was


class Unit:
    """Atoms of unit norm, or 0, (D, d)."""

    def __init__(self, atoms: Tensor, n_choices: int):
        self.n = atoms.shape[1]
        self.columns, self.rows = atoms, atoms.T.contiguous()
        self.places = torch.arange(self.n, 0, -1, dtype=atoms.dtype, device=atoms.device)
        # AᵀA costs as much as d products with A, and spares two for every choice.
        self.gram = self.rows @ self.columns if self.n <= min(_WIDEST_GRAM, 2 * n_choices) else None

    def products(self, chosen: Tensor, best: Tensor) -> Tensor:
        """aᵢᵀaⱼ of the atoms taken (B, k) with another (B, 1), (B, k)."""
        if self.gram is None:
            return torch.bmm(self.rows[best], self.rows[chosen].mT)[:, 0]
        return torch.take(self.gram, torch.add(best, chosen, alpha=len(self.gram)))

    def spread(self, chosen: Tensor, weights: Tensor) -> Tensor:
        """AᵀA·(a sparse code), (B, d): a weighted sum of rows of AᵀA, or a product with A."""
        if self.gram is None:
            return self.image(chosen, weights) @ self.columns
        return embedding_bag(chosen, self.gram, per_sample_weights=weights, mode="sum")

    def image(self, chosen: Tensor, weights: Tensor) -> Tensor:
        """A·(a sparse code), (B, D)."""
        return embedding_bag(chosen, self.rows, per_sample_weights=weights, mode="sum")


@dataclass
class Chase:
    """Pursuits of signals of unit norm, all at the same count. Those that have stopped go along with steps of 0."""

    places: Tensor  # (B,)
    x: Tensor  # (B, D)
    stop: Tensor  # ‖r‖² at which to stop, (B, 1)
    slope: Tensor  # Aᵀr, (B, d)
    energy: Tensor  # ‖r‖², (B, 1)
    fresh: Tensor  # ‖r‖² when it was last computed from r, (B, 1)
    free: Tensor  # 1, or 0 for the atoms taken, (B, d)
    live: Tensor  # 1, or 0 where it has stopped, (B, 1)
    distinct: Tensor  # smallest squared sine between an atom taken and those before, (B, 1)
    chosen: Tensor  # (B, K)
    coefficients: Tensor  # (B, K)
    projections: Tensor  # (B, K)
    energies: Tensor  # (B, K)
    inverse: Tensor  # L⁻¹ where LLᵀ are the products of the atoms taken, (B, m, m)
    transposed: Tensor  # L⁻ᵀ: a row times a matrix is the fast order

    @staticmethod
    def begin(places: Tensor, x: Tensor, unit: Unit, limit: int, stop: Tensor) -> "Chase":
        energy, eps = x.square().sum(-1, keepdim=True), torch.finfo(x.dtype).eps
        width = -(-limit // _GROW) * _GROW
        chosen = places.new_zeros(len(x), width)
        numbers = [x.new_zeros(len(x), width) for _ in range(3)]
        squares = [x.new_zeros(len(x), _GROW, _GROW) for _ in range(2)]
        one = torch.ones_like(energy)
        slope = x @ unit.columns
        return Chase(
            places, x, stop.clamp_min((10 * eps) ** 2), slope, energy, energy.clone(), torch.ones_like(slope), one, one, chosen,
            *numbers, *squares,
        )  # fmt: skip

    def at(self, rows: Tensor) -> "Chase":
        return Chase(*(getattr(self, field.name).index_select(0, rows) for field in fields(self)))

    def take(self, unit: Unit, k: int) -> None:
        """One more atom for every pursuit that still goes: its direction orthogonal to those before, and a step."""
        best, value = largest(self.slope.abs().mul_(self.free), unit.places)
        self.free.scatter_(1, best, 0.0)
        faint = 10 * torch.finfo(value.dtype).eps  # may be rounding
        self.live = self.live * (self.energy > self.stop) * (value > faint)
        row = self._row(unit, best, k)
        weight = self.slope.gather(1, best) * row[:, k : k + 1] * self.live
        step = row * weight
        self.chosen[:, k : k + 1] = best
        self.coefficients[:, : row.shape[1]] += step
        self.projections[:, k : k + 1] = weight
        self.energies[:, k : k + 1] = self.energy * self.live
        self.energy = torch.addcmul(self.energy, weight, weight, value=-1).clamp_min_(0)
        self.slope -= unit.spread(self.chosen[:, : k + 1], step[:, : k + 1])

    def _row(self, unit: Unit, best: Tensor, k: int) -> Tensor:
        """The next row of L⁻¹, [−wᵀL⁻¹, 1]/√(1 − ‖w‖²) with w = L⁻¹·products, followed by zeros, (B, m).

        Beyond the atoms taken the products are of no matter: they meet zeros.
        """
        if k == self.inverse.shape[1]:
            self.inverse, self.transposed = (pad(m, (0, _GROW, 0, _GROW)) for m in (self.inverse, self.transposed))
        products = unit.products(self.chosen[:, : self.inverse.shape[1]], best)
        w = torch.bmm(products[:, None], self.transposed)
        sine = (1 - w.square().sum(-1)).clamp_min_(torch.finfo(w.dtype).eps)
        self.distinct = torch.minimum(self.distinct, torch.where(self.live > 0, sine, self.distinct))
        scale = sine.rsqrt()
        row = torch.bmm(w, self.inverse)[:, 0].mul_(-scale)
        row[:, k : k + 1] = scale
        self.inverse[:, k], self.transposed[:, :, k] = row, row
        return row

    def refresh(self, unit: Unit, k: int, rows: Tensor) -> None:
        """Aᵀr and ‖r‖² of these rows from r itself, which updates have worn down, after one step of refinement."""
        width, x = self.inverse.shape[1], self.x[rows]
        chosen, codes = self.chosen[rows, :k], self.coefficients[rows, :width]
        left = (x - unit.image(chosen, codes[:, :k])) @ unit.columns
        rest = pad(left.gather(1, chosen), (0, width - k))[:, None]
        codes += torch.bmm(torch.bmm(rest, self.transposed[rows]), self.inverse[rows])[:, 0]
        residual = x - unit.image(chosen, codes[:, :k])
        self.coefficients[rows, :width], self.slope[rows] = codes, residual @ unit.columns
        self.energy[rows] = self.fresh[rows] = residual.square().sum(-1, keepdim=True)

    def result(self, limit: int, none: int, norms: Tensor) -> Pursuit:
        """In units of signals whose norms (B, 1) are these."""
        energies = self.energies[:, :limit]
        chosen = torch.where(energies > 0, self.chosen[:, :limit], none)
        coefficients, projections = self.coefficients[:, :limit] * norms, self.projections[:, :limit] * norms
        return Pursuit(chosen, coefficients, projections, energies * norms.square())
