"""What all methods are given: whitened patches of the embedded photographs, a dictionary, a penalty, a count."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softspike.data import photograph_patches
from softspike.solver import lasso

__all__ = ["Problem", "make_problem"]

_ROUNDS = 6  # of dictionary learning
_RIDGE = 1e-3  # of the mean energy of a component, so that unused ones do not matter


@dataclass(frozen=True)
class Problem:
    learning: Tensor  # (m, D) what encoders learn from
    x: Tensor  # (n, D) the signals to code, unseen
    atoms: Tensor  # (D, d) of unit norm
    penalty: float  # λ at which the lasso has `n_active` non-zeros on average
    n_active: int

    @property
    def n_components(self) -> int:
        return self.atoms.shape[1]


def make_problem(n_components: int, n_signals: int, n_active: int, n_learning: int, seed: int = 0) -> Problem:
    """Patches of 16×16, scaled to unit variance, and a dictionary learned by turns of lasso and least squares.

    A ← XᵀZ(ZᵀZ + ε)⁻¹, columns brought to unit norm; it starts from patches.
    """
    patches = photograph_patches(max(n_learning, 2 * n_components), n_signals, size=16, seed=seed)
    learning, x = (torch.from_numpy(part) for part in patches)
    mean, scale = learning.mean(0), learning.std()
    learning, x = (learning - mean) / scale, (x - mean) / scale
    atoms = _unit(learning[-n_components:].T)
    learning = learning[:n_learning]
    for _ in range(_ROUNDS):
        codes = lasso(learning, atoms, _penalty_for(learning[:500], atoms, n_active), tolerance=1e-2).codes
        energy = codes.T @ codes
        energy.diagonal().add_(_RIDGE * float(energy.diagonal().mean()))
        found = torch.linalg.solve(energy, codes.T @ learning).T
        used = (codes != 0).sum(0) >= 3
        atoms = torch.where(used, _unit(found), atoms)
    return Problem(learning, x, atoms.contiguous(), _penalty_for(x[:1000], atoms, n_active), n_active)


def _unit(columns: Tensor) -> Tensor:
    return columns / columns.norm(dim=0).clamp_min(1e-12)


def _penalty_for(x: Tensor, atoms: Tensor, n_active: int) -> float:
    """By bisection on its logarithm."""
    high = float((x @ atoms).abs().max())
    low = 1e-3 * high
    for _ in range(8):
        middle = float(np.sqrt(low * high))
        count = float((lasso(x, atoms, middle, tolerance=1e-2).codes != 0).sum(-1).double().mean())
        low, high = (middle, high) if count > n_active else (low, middle)
    return high
