"""Tensors as they are given: those that hold no values, or none that are real numbers, get one sentence."""

import torch
from torch import Tensor

from softspike.data.error import DataError, dtype_error

__all__ = ["check_tensor"]


def check_tensor(tensor: Tensor) -> None:
    """Raise DataError for complex or quantised numbers, sparse layouts and tensors of the meta device."""
    if tensor.is_complex() or tensor.is_quantized:
        raise dtype_error(tensor.dtype)
    if tensor.layout != torch.strided:
        layout = str(tensor.layout).removeprefix("torch.")
        raise DataError(f"the data is a tensor of layout {layout}, expected a dense one; give x.to_dense().")
    if tensor.is_meta:
        raise DataError("the data is on the device 'meta', which holds no values, expected 'cpu' or 'cuda'; load it.")
