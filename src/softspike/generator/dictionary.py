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


class UnitNormDictionary(LinearGenerator):
    """x̂ = Az with ‖aᵢ‖ = 1: codes are in the units of the data."""

    def __init__(self, n_features: int, n_components: int, generator: Generator | None = None):
        super().__init__()
        self.weight = nn.Parameter(random_atoms(n_features, n_components, generator))

    @property
    def atoms(self) -> Tensor:
        return self.weight

    def penalty(self) -> Tensor:
        """0: there is nothing to bound."""
        return self.weight.new_zeros(())

    @torch.no_grad()
    def project_gradient(self) -> None:
        """gᵢ ← gᵢ − aᵢ(aᵢᵀgᵢ): only moves along the sphere count, in the size of a step as in its direction."""
        if self.weight.grad is not None:
            self.weight.grad -= self.weight * (self.weight * self.weight.grad).sum(0)

    @torch.no_grad()
    def constrain(self) -> None:
        """aᵢ ← aᵢ/‖aᵢ‖."""
        self.weight.div_(self.weight.norm(dim=0).clamp_min(1e-12))
