"""Rows are images: pixels flattened in the order (height, width, channel), and how a square image is halved."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

__all__ = ["ImageShape", "as_images", "as_rows"]

# A 4×4 map is where halving stops; 5, 6 and 7 are brought to 4 by one unpadded convolution.
_SMALLEST, _LARGEST_REST = 4, 7


class ImageShape(NamedTuple):
    """Square images of `size`×`size` pixels."""

    size: int
    channels: int

    @classmethod
    def of(cls, shape: Sequence[int]) -> "ImageShape":
        """From (h, w) or (h, w, c); ValueError where the networks here have no layers for it."""
        if len(shape) not in (2, 3) or shape[0] != shape[1]:
            raise ValueError(
                f"the images have shape {tuple(shape)}, expected square ones, (size, size[, channels]); crop them"
            )
        image = cls(int(shape[0]), int(shape[2]) if len(shape) == 3 else 1)
        if not _SMALLEST <= image.rest <= _LARGEST_REST or image.halvings < 1:
            raise ValueError(
                f"the images are {image.size}×{image.size}, expected a size that halves to 4, 5, 6 or 7 "
                "(28, 32, 48, 64, 96, 128, …); resize them"
            )
        return image

    @property
    def n_pixels(self) -> int:
        """D = size²·channels."""
        return self.size * self.size * self.channels

    @property
    def halvings(self) -> int:
        """How often the size can be halved without going below 4."""
        size, times = self.size, 0
        while size % 2 == 0 and size // 2 >= _SMALLEST:
            size, times = size // 2, times + 1
        return times

    @property
    def rest(self) -> int:
        """The size after all halvings: 4 for 64, 7 for 28."""
        return self.size >> self.halvings


def as_images(rows: Tensor, shape: ImageShape) -> Tensor:
    """(B, D) → (B, C, H, W), a view: the order (height, width, channel) of a row is torch's channels-last memory."""
    return rows.view(-1, shape.size, shape.size, shape.channels).permute(0, 3, 1, 2)


def as_rows(images: Tensor) -> Tensor:
    """(B, C, H, W) → (B, D); a view where the images are channels-last in memory."""
    return images.permute(0, 2, 3, 1).reshape(len(images), -1)
