"""The linear encoder: the heads see the data itself."""

from torch import Tensor

from softspike.encoder.base import Encoder

__all__ = ["LinearEncoder"]


class LinearEncoder(Encoder):
    """h = x, so that each posterior head is one affine map of the data."""

    def __init__(self, n_features: int):
        super().__init__()
        self.width = n_features

    def forward(self, x: Tensor) -> Tensor:
        return x
