"""What an encoder answers."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["Encoder"]


class Encoder(nn.Module, ABC):
    """x (B, D) → h (B, width)."""

    width: int

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...
