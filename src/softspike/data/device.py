"""Rows that live where they are used: images as uint8 on the GPU, gathered and turned into float32 there."""

from math import prod

import numpy as np
import torch
from torch import Tensor

from softspike.data.images import PixelRows
from softspike.data.mapped import is_mapped
from softspike.data.rows import ArrayRows, Rows, TensorRows

__all__ = ["DevicePixels", "on_device"]


class DevicePixels:
    """Images (n, h, w[, c]) of bytes on a device, as rows of pixel/255."""

    def __init__(self, images: Tensor):
        self.image_shape: tuple[int, ...] | None = tuple(images.shape[1:])
        self.n_features = prod(images.shape[1:])
        self.images = images.view(len(images), self.n_features)

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: Tensor) -> Tensor:
        chosen = indices.to(self.images.device, torch.int64, non_blocking=True)
        return self.images.index_select(0, chosen).to(torch.float32).div_(255)


def on_device(rows: Rows, device: torch.device | str, share: float = 0.5) -> Rows:
    """Byte images and arrays of numbers on the GPU, where they fit into a share of its free memory, so that a batch is
    gathered there. What is not in memory, and on a CPU everything, stays as it is."""
    device = torch.device(device)
    if device.type != "cuda":
        return rows
    room = share * torch.cuda.mem_get_info(device)[0]
    if isinstance(rows, PixelRows) and rows.images.dtype == np.uint8 and rows.images.nbytes <= room:
        return DevicePixels(torch.from_numpy(np.ascontiguousarray(rows.images)).to(device))
    if isinstance(rows, ArrayRows) and not is_mapped(rows.array) and 4 * rows.array.size <= room:
        return TensorRows(rows.take(torch.arange(len(rows))).to(device), rows.image_shape)
    return rows
