"""What a linear generator answers."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["LinearGenerator"]


class LinearGenerator(nn.Module, ABC):
    """x̂ = Az with A (D, d) in `atoms`; how its columns are kept in bounds is the subclass's business."""

    @property
    @abstractmethod
    def atoms(self) -> Tensor:
        """A, (D, d)."""

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.atoms.T

    @abstractmethod
    def penalty(self) -> Tensor:
        """Added to ½‖x − Az‖², a scalar."""

    def project_gradient(self) -> None:
        """Called before each step, when gradients are there."""

    @abstractmethod
    def constrain(self) -> None:
        """Called after each step."""
