"""The two dictionaries: columns kept in bounds by a penalty, or by a constraint."""

import torch
from torch import Generator, Tensor, nn

from softspike.generator.base import LinearGenerator

__all__ = ["Dictionary", "UnitNormDictionary", "random_atoms"]


def random_atoms(n_features: int, n_components: int, generator: Generator | None = None) -> Tensor:
    """(D, d) Gaussian columns of unit norm."""
    columns = torch.randn(n_features, n_components, generator=generator)
    return columns / columns.norm(dim=0)


class Dictionary(LinearGenerator):
    """x̂ = Az with the Frobenius penalty κ‖A‖²; starts as unit-norm Gaussian columns."""

    def __init__(self, n_features: int, n_components: int, frobenius: float = 1e-4, generator: Generator | None = None):
        super().__init__()
        self.weight = nn.Parameter(random_atoms(n_features, n_components, generator))
        self.frobenius = frobenius

    @property
    def atoms(self) -> Tensor:
        return self.weight

    def penalty(self) -> Tensor:
        """κ‖A‖²_F, on the scale of ½‖x − Az‖²."""
        return self.frobenius * self.weight.square().sum()

    def constrain(self) -> None:
        """Nothing to do: the penalty bounds the norms."""


class UnitNormDictionary(LinearGenerator):
    """x̂ = Az with ‖aᵢ‖ = 1: codes are in the units of the data.

    The columns are normalised where they are used, so that gradients are tangent to the sphere, and after each step,
    so that the weight's own norm never drifts.
    """

    def __init__(self, n_features: int, n_components: int, generator: Generator | None = None):
        super().__init__()
        self.weight = nn.Parameter(random_atoms(n_features, n_components, generator))

    @property
    def atoms(self) -> Tensor:
        """aᵢ = wᵢ/‖wᵢ‖."""
        return self.weight / self.weight.norm(dim=0).clamp_min(1e-12)

    def penalty(self) -> Tensor:
        """0: there is nothing to bound."""
        return self.weight.new_zeros(())

    @torch.no_grad()
    def constrain(self) -> None:
        """wᵢ ← wᵢ/‖wᵢ‖."""
        self.weight.div_(self.weight.norm(dim=0).clamp_min(1e-12))
