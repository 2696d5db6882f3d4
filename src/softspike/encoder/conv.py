"""The convolutional encoders of the paper's deep study, for square images of other sizes too."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softspike.encoder.base import Encoder
from softspike.layers import BatchNorm, ImageShape, as_images

__all__ = ["ConvEncoder"]

_CHANNELS = (64, 64, 128, 256)  # of the layers from the image inwards; deeper ones stay at the last


class ConvEncoder(Encoder):
    """Rows of pixels (B, D) → h (B, width): convolutions that halve the image, each with batch norm and ReLU.

    Halving (kernel 4, stride 2, pad 1) goes on to a 4×4 map, a rest of 5 to 7 pixels is brought there without padding,
    and a last 4×4 convolution leaves one pixel of `width` channels. For 28×28 and 64×64 that is the paper's table:

        28 → 14 → 7 → 4 → 1 with 64, 64, 128, 128 channels      64 → 32 → 16 → 8 → 4 → 1 with 64, 64, 128, 256, 256
    """

    def __init__(self, image_shape: Sequence[int]):
        super().__init__()
        self.shape = ImageShape.of(image_shape)
        channels, layers = self.shape.channels, nn.Sequential()

        def add(out: int, kernel: int, stride: int, pad: int) -> int:
            # A bias before batch norm would be subtracted again.
            layers.extend([nn.Conv2d(channels, out, kernel, stride, pad, bias=False), BatchNorm(out), nn.ReLU(True)])
            return out

        for depth in range(self.shape.halvings):
            channels = add(_CHANNELS[min(depth, len(_CHANNELS) - 1)], 4, 2, 1)
        if self.shape.rest > 4:
            channels = add(_CHANNELS[min(self.shape.halvings, len(_CHANNELS) - 1)], self.shape.rest - 3, 1, 0)
        self.width = add(channels, 4, 2, 0)
        self.layers = layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) < 2:
            raise ValueError(
                "the batch holds 1 image, expected at least 2 for batch normalisation; give larger batches"
            )
        return self.layers(as_images(x, self.shape)).flatten(1)
