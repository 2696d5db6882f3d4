"""Functions of single numbers for which `torch.func.vmap` has no rule."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

__all__ = ["elementwise"]


def elementwise(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """function(*tensors), tensors of one shape, element by element: also under vmap in one call, with its gradient.

    Left alone, vmap would call it once for each replica, and warn.
    """
    if torch._C._are_functorch_transforms_active():
        return _Elementwise.apply(function, *tensors)
    return function(*tensors)


class _Elementwise(torch.autograd.Function):
    """vmap's rule: an elementwise function treats the new axis like any other."""

    @staticmethod
    def forward(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        raise RuntimeError("only vmap is known here, among the transformations of torch.func")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None: ...

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], function: Callable[..., Tensor], *tensors: Tensor) -> Any:
        dims = in_dims[1:]
        whole = [
            tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(tensors, dims, strict=True)
        ]
        return function(*whole), 0
