"""Compiled loops on the threads that torch computes with.

OpenMP threads keep spinning for milliseconds after their last work. A pool of our own would share the cores with
torch's, and a step that goes back and forth between the two would mostly wait for the scheduler; so the loops run in
torch's pool, through the OpenMP runtime that it is linked with.
"""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import torch
from llvmlite import binding
from numba import carray, cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray
from torch import Tensor

from softspike.kernels.compiled import compiled

__all__ = ["loop", "matrix", "numbers", "pointer", "run", "share", "vector"]

_NUMBER, _COUNT = "softspike_thread_number", "softspike_thread_count"


@cfunc(types.int32(), cache=True)
def _zero() -> int:
    return 0


@cfunc(types.int32(), cache=True)
def _one() -> int:
    return 1


def _reach() -> Any | None:
    """GOMP_parallel(function, data, threads, flags) of torch's OpenMP runtime; None where there is none to be found.

    Compiled code learns how to ask which of the threads it is, and of how many.
    """
    library = Path(torch.__file__).parent / "lib" / "libtorch_global_deps.so"
    try:
        runtime = ctypes.CDLL(str(library))
        fork, number, count = runtime.GOMP_parallel, runtime.omp_get_thread_num, runtime.omp_get_num_threads
    except (OSError, AttributeError):
        binding.add_symbol(_NUMBER, _zero.address)
        binding.add_symbol(_COUNT, _one.address)
        return None
    fork.argtypes, fork.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint], None
    binding.add_symbol(_NUMBER, ctypes.cast(number, ctypes.c_void_p).value)
    binding.add_symbol(_COUNT, ctypes.cast(count, ctypes.c_void_p).value)
    return fork


_FORK = _reach()  # before anything is compiled that asks
_number: Any = types.ExternalFunction(_NUMBER, types.int32())
_count: Any = types.ExternalFunction(_COUNT, types.int32())


@compiled
def share(n_rows: int) -> tuple[int, int]:
    """Inside a loop: the first row of this thread, and the first of the next."""
    number, count = _number(), _count()
    return n_rows * number // count, n_rows * (number + 1) // count


def _pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), generate


pointer: Any = intrinsic(_pointer)


@compiled
def matrix(address: int, n_rows: int, n_columns: int) -> NDArray[np.float32]:
    """Inside a loop: the contiguous float32 matrix at an address."""
    return carray(pointer(address), (n_rows, n_columns), np.float32)


@compiled
def vector(address: int, n: int) -> NDArray[np.float32]:
    """Inside a loop: the contiguous float32 vector at an address."""
    return carray(pointer(address), (n,), np.float32)


# Of a function that finds the address of int64s: the numbers and the addresses of the tensors that `run` was given.
loop = cfunc(types.void(types.voidptr), cache=True)


def numbers(*values: float) -> Tensor:
    """A few numbers for a `loop`, as float32 (torch.tensor takes five times as long)."""
    return torch.from_numpy(np.array(values, np.float32))


def run(function: Any, numbers: tuple[int, ...], *tensors: Tensor) -> None:
    """Call a `loop` once on each of as many threads as torch uses, or once where torch's cannot be reached."""
    data = np.array([*numbers, *(tensor.data_ptr() for tensor in tensors)], dtype=np.int64)
    if _FORK is None:
        function.ctypes(data.ctypes.data)
    else:
        _FORK(function.address, data.ctypes.data, torch.get_num_threads(), 0)
