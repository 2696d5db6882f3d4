"""bfloat16 inside compiled loops: the upper half of a float32, kept as 16 bits without a sign."""

from typing import Any

import numpy as np
from numba import carray

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.threads import pointer

__all__ = ["low_matrix", "lowered", "raised"]

_U16, _U32 = np.uint16, np.uint32
_HALF_WAY, _LAST, _ROUND, _NONE = _U32(16), _U32(1), _U32(0x7FFF), _U16(0x7FC0)


@compiled
def low_matrix(address: int, n_rows: int, n_columns: int) -> Any:
    """Inside a loop: the contiguous bfloat16 matrix at an address."""
    return carray(pointer(address), (n_rows, n_columns), np.uint16)


@compiled
def raised(half: np.uint16) -> np.float32:
    """The same number in float32."""
    return _U32(_U32(half) << _HALF_WAY).view(np.float32)


@compiled
def lowered(value: np.float32) -> np.uint16:
    """The nearest number in bfloat16, of two the even one, as torch rounds; what is no number stays none."""
    bits = np.float32(value).view(np.uint32)
    nearest = _U16(_U32(bits + _ROUND + (_U32(bits >> _HALF_WAY) & _LAST)) >> _HALF_WAY)
    return nearest if value == value else _NONE
