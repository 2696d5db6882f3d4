"""In which shape features are drawn, and values as the bytes a browser draws from."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

__all__ = ["Drawn", "drawn_as", "size_of", "to_bytes", "to_signed_bytes"]


def size_of(shape: Sequence[int] | None, n_features: int | None) -> str:
    """What one row is, in words: '8 × 8 × 3', '16 × 16' of one channel, '64 features' of no picture."""
    if not shape:
        return f"{n_features} features"
    return " × ".join(map(str, shape[:-1] if len(shape) == 3 and shape[-1] == 1 else shape))


class Drawn(NamedTuple):
    """How D features become a picture of at most `limit` values, or as many bars."""

    kind: str  # "grey", "colour" or "bars"
    source: tuple[int, ...]  # (h, w, channels) in the order of the data, or (D,)
    planes_first: bool  # the data has its channels before height and width
    size: tuple[int, int]  # height and width drawn; (1, number of bars)
    guessed: bool  # the data did not say that it is a picture

    @property
    def n_values(self) -> int:
        return self.size[0] * self.size[1] * (3 if self.kind == "colour" else 1)

    @property
    def reduced(self) -> bool:
        """Neighbouring features are averaged for drawing."""
        return self.n_values < math.prod(self.source)

    def values(self, features: np.ndarray) -> np.ndarray:
        """(n, D) → (n, n_values): averages over squares of pixels, or over neighbouring features."""
        x = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        if self.kind == "bars":
            return nn.functional.adaptive_avg_pool1d(x[:, None], self.size[1])[:, 0].numpy()
        h, w, channels = self.source
        planes = x.reshape(-1, channels, h, w) if self.planes_first else x.reshape(-1, h, w, channels).movedim(3, 1)
        small = nn.functional.adaptive_avg_pool2d(planes, self.size)
        return small.movedim(1, 3).reshape(len(x), -1).numpy()


def drawn_as(n_features: int, image_shape: tuple[int, ...] | None, limit: int) -> Drawn:
    """The data's own shape where it is a picture, a square where the number of features is one, else bars."""
    picture = _picture(image_shape)
    side = math.isqrt(n_features)
    if picture is None and (image_shape or side * side != n_features or side < 3):
        return Drawn("bars", (n_features,), False, (1, min(n_features, limit)), False)
    (h, w, channels), planes_first = picture if picture else ((side, side, 1), False)
    factor = max(math.ceil(math.sqrt(n_features / limit)), 1)
    size = math.ceil(h / factor), math.ceil(w / factor)
    return Drawn("colour" if channels == 3 else "grey", (h, w, channels), planes_first, size, picture is None)


def _picture(shape: tuple[int, ...] | None) -> tuple[tuple[int, int, int], bool] | None:
    """(h, w, channels) and whether channels come first, where this is the shape of a picture."""
    if shape and len(shape) == 2:
        return (shape[0], shape[1], 1), False
    if shape and len(shape) == 3 and shape[2] in (1, 3):
        return (shape[0], shape[1], shape[2]), False
    if shape and len(shape) == 3 and shape[0] in (1, 3):
        return (shape[1], shape[2], shape[0]), True
    return None


def to_signed_bytes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int8 (n, m) and the value of 127 in each row, (n,): zero stays exactly zero."""
    peak = np.abs(values).max(1, initial=0).astype(np.float32)
    return np.rint(127 * values / np.maximum(peak, 1e-30)[:, None]).astype(np.int8), peak


def to_bytes(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """uint8 with each row's low at 0 and high at 255."""
    span = np.maximum(high - low, 1e-30)[:, None]
    return np.rint(255 * np.clip((values - low[:, None]) / span, 0, 1)).astype(np.uint8)
