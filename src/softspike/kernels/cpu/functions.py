"""log and exp without a branch or a call, so that loops over them vectorise."""

import math

import numpy as np
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled

__all__ = ["Array", "exponential", "logarithm"]

Array = NDArray[np.float32]
_F, _I = np.float32, np.int32
_ONE, _HALF, _LOG_2 = _F(1), _F(0.5), _F(math.log(2))
_BITS, _BIAS, _ROOT_HALF = _I(23), _I(127), _I(0x3F3504F3)  # of a float's fraction, of its exponent; the bits of √½

# log(1 + m) = m − ½m² + m³·p(m) on [√½ − 1, √2 − 1], by a least maximal error.
_P = tuple(_F(c) for c in (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
))  # fmt: skip
_E = tuple(_F(1 / math.factorial(k)) for k in range(7, -1, -1))  # exp by its Taylor series on [−½ log 2, ½ log 2]
_LEAST, _LOG_2_HIGH, _LOG_2_LOW = _F(-87), _F(0.693359375), _F(math.log(2) - 0.693359375)


@compiled
def logarithm(x: np.float32) -> np.float32:
    """log x of a positive normal number, relative error 2e-7."""
    bits = _F(x).view(np.int32)
    exponent = (bits - _ROOT_HALF) >> _BITS
    m = _I(bits - (exponent << _BITS)).view(np.float32) - _ONE
    p = _P[0]
    for c in _P[1:]:
        p = p * m + c
    return p * m * m * m - _HALF * m * m + m + _F(exponent) * _LOG_2


@compiled
def exponential(x: np.float32) -> np.float32:
    """exp x for x ≤ 88, relative error 2e-7; what is below −87 counts as −87."""
    x = max(x, _LEAST)
    whole = _F(math.floor(x / _LOG_2 + _HALF))
    rest = x - whole * _LOG_2_HIGH - whole * _LOG_2_LOW
    p = _E[0]
    for c in _E[1:]:
        p = p * rest + c
    return p * _I((_I(whole) + _BIAS) << _BITS).view(np.float32)
