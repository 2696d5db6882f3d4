"""Loops over single samples, compiled by numba where it is installed; every one has a plain version beside it."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["WIDEST_GRAM", "accepts", "available", "compiled", "kernel"]

WIDEST_GRAM = 8192  # atoms whose AᵀA compiled loops may read: a quarter of a gigabyte

# Sums may be taken in any order and products joined with sums; numbers that are not finite keep their meaning.
_FREE = {"reassoc", "contract", "nsz"}


@cache
def available() -> bool:
    return find_spec("numba") is not None


def accepts(x: Tensor) -> bool:
    """Whether compiled code reads this: on a CPU, in one of two precisions, and numba is there."""
    return available() and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A part of kernels, as machine code where numba is installed: it becomes part of whatever calls it.

    Left to itself, a part is sometimes called where it lies, which is another place in the process that compiles it
    than in the next one, which reads the kernel from disk; the two may round otherwise.
    """
    return _compiled(function, forceinline=True)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """What Python calls: machine code that runs beside other threads and is kept on disk, all its parts within it."""
    return _compiled(function, cache=True)


def _compiled(function: Callable[..., Any], cache: bool = False, forceinline: bool = False) -> Callable[..., Any]:
    """The function as it is where numba is absent."""
    if not available():
        return function
    from numba import njit

    # Division by 0 gives what the processor gives: a branch that looks for it would keep loops from vectorising.
    return njit(function, nogil=True, fastmath=_FREE, error_model="numpy", cache=cache, forceinline=forceinline)
