"""Loops over single samples, compiled by numba where it is installed; every one has a plain version beside it."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["WIDEST_GRAM", "available", "compiled"]

WIDEST_GRAM = 8192  # atoms whose AᵀA compiled loops may read: a quarter of a gigabyte

# Sums may be taken in any order and products joined with sums; numbers that are not finite keep their meaning.
_FREE = {"reassoc", "contract", "nsz"}


@cache
def available() -> bool:
    return find_spec("numba") is not None


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as machine code that runs beside other threads, kept on disk; as it is where numba is absent."""
    if not available():
        return function
    from numba import njit

    # Division by 0 gives what the processor gives: a branch that looks for it would keep loops from vectorising.
    return njit(function, nogil=True, fastmath=_FREE, cache=True, error_model="numpy")
