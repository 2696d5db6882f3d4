"""What a generator answers, and what a linear one adds."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["Generator", "LinearGenerator"]


class Generator(nn.Module, ABC):
    """z (…, d) → x̂. Bounds on its parameters are a penalty, a constraint after each step, or neither."""

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor: ...

    @abstractmethod
    def penalty(self) -> Tensor:
        """Added to ½‖x − x̂‖², a scalar."""

    def project_gradient(self) -> None:
        """Called before each step, when gradients are there."""

    @abstractmethod
    def constrain(self) -> None:
        """Called after each step."""


class LinearGenerator(Generator):
    """x̂ = Az with A (D, d) in `atoms`; how its columns are kept in bounds is the subclass's business."""

    @property
    @abstractmethod
    def atoms(self) -> Tensor:
        """A, (D, d)."""

    @property
    def n_features(self) -> int:
        return self.atoms.shape[0]

    @property
    def n_components(self) -> int:
        return self.atoms.shape[1]

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.atoms.T
