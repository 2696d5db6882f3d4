"""The multi-layer perceptron of the paper's linear study."""

from collections.abc import Sequence

from torch import Tensor, nn

from softspike.encoder.base import Encoder
from softspike.layers import affine_relu

__all__ = ["MLPEncoder"]


class MLPEncoder(Encoder):
    """Affine layers of the given widths, each followed by ReLU. The paper's: 256 → 512 → 1024 → 512 → 256."""

    def __init__(self, n_features: int, widths: Sequence[int] = (512, 1024, 512, 256)):
        super().__init__()
        layers: list[nn.Module] = []
        for before, after in zip([n_features, *widths], widths, strict=False):
            layers += [nn.Linear(before, after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.width = widths[-1]

    def forward(self, x: Tensor) -> Tensor:
        return affine_relu(x, [layer for layer in self.layers if isinstance(layer, nn.Linear)])
