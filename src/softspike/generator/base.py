"""What a generator answers, and what a linear one adds."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

__all__ = ["Generator", "LinearGenerator", "atoms_of"]


class Generator(nn.Module, ABC):
    """z (…, d) → x̂ (…, D). Bounds on its parameters are a penalty, a constraint after each step, or neither.

    Images are rows like any other data: pixels flattened in the order (height, width, channel).
    """

    @property
    @abstractmethod
    def n_features(self) -> int:
        """D."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """d."""

    @property
    def gives_shares(self) -> bool:
        """Whether x̂ lies in [0, 1]. Data is then expected there too, and is not standardised."""
        return False

    @abstractmethod
    def forward(self, z: Tensor) -> Tensor: ...

    @torch.no_grad()
    def preview(self, z: Tensor) -> Tensor:
        """x̂ without gradient, each code for itself. Leaves the generator as it is."""
        return self(z)

    @torch.no_grad()
    def errors(self, x: Tensor, z: Tensor) -> Tensor:
        """mean over features of (x − x̂)², (J, B), by the preview of codes (J, B, d): what samples are compared by."""
        return (x - self.preview(z)).square().mean(-1)

    def penalty(self) -> Tensor | float:
        """Added to ½‖x − x̂‖², a scalar; 0 where nothing is to be bounded."""
        return 0.0

    def project_gradient(self) -> None:
        """Called before each step, when gradients are there."""

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


def atoms_of(generator: Generator) -> Tensor:
    """A, (D, d), without gradient; TypeError for a generator that has none."""
    if not isinstance(generator, LinearGenerator):
        raise TypeError(f"a {type(generator).__name__} has no atoms; give a coder with a linear generator")
    return generator.atoms.detach()
