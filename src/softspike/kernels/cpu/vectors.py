"""Two things that loops do not vectorise to by themselves, as operations on 64 numbers at a time.

They are written in LLVM's own words, which know vectors of any length: a processor with AVX-512 takes them in four
pieces, one with AVX2 in eight.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from softspike.kernels.compiled import compiled
from softspike.kernels.cpu.functions import Array

__all__ = ["Places", "misfit", "places_of"]

WIDTH = 64
Places = NDArray[np.int32]
_F, _U, _FREE = np.float32, np.uint64, ("reassoc", "contract", "nsz")
_FLOAT, _WORD, _LONG = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_MANY = ir.VectorType(_FLOAT, WIDTH)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    """What lies at an address, at the places of single floats."""
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=4)


def _marks(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        numbers = _load(builder, values[0], _MANY)
        return builder.bitcast(builder.fcmp_unordered("!=", numbers, ir.Constant(_MANY, None)), _LONG)

    return types.uint64(types.int64), generate


def _first(typing: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


def _left(typing: Any, x: Any, rows: Any, stride: Any, places: Any, weights: Any, n: Any, rest: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, rows, stride, places, weights, n, rest = values
        left = cgutils.alloca_once(builder, _MANY)
        builder.store(_load(builder, x, _MANY), left)
        with cgutils.for_range(builder, n) as loop:
            place = builder.add(places, builder.mul(loop.index, _LONG(4)))
            row = builder.sext(_load(builder, place, _WORD), _LONG)
            atom = _load(builder, builder.add(rows, builder.mul(row, stride)), _MANY)
            weight = _load(builder, builder.add(weights, builder.mul(loop.index, _LONG(4))), _FLOAT)
            one = builder.insert_element(ir.Constant(_MANY, ir.Undefined), weight, _WORD(0))
            same = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(_WORD, WIDTH), None))
            step = builder.fmul(same, atom, flags=_FREE)
            builder.store(builder.fsub(builder.load(left), step, flags=_FREE), left)
        end = builder.load(left)
        builder.store(end, builder.inttoptr(rest, _MANY.as_pointer()), align=4)
        total = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_FLOAT, [_FLOAT, _MANY]), f"llvm.vector.reduce.fadd.v{WIDTH}f32"
        )
        return builder.call(total, [_FLOAT(0.0), builder.fmul(end, end, flags=_FREE)], fastmath=_FREE)

    long = types.int64
    return types.float32(long, long, long, long, long, long, long), generate


marks: Any = intrinsic(_marks)  # of the floats at an address, which are not 0: a bit for each
first_of: Any = intrinsic(_first)  # the lowest bit that is set; there must be one
left_of: Any = intrinsic(_left)  # x − Σ weight·row into `rest`, all at addresses; returns its ‖·‖²


@compiled
def places_of(z: Array, places: Places) -> int:
    """Where z is not 0, in order; how many there are. It may write one place more than these."""
    n, d, address = 0, len(z), z.ctypes.data
    whole = d - d % WIDTH
    for begin in range(0, whole, WIDTH):
        bits = marks(address + 4 * begin)
        while bits != _U(0):
            places[n] = begin + first_of(bits)
            bits &= bits - _U(1)
            n += 1
    for i in range(whole, d):
        places[n] = i
        n += z[i] != _F(0)
    return n


@compiled
def misfit(x: Array, rows: Array, places: Places, values: Array, n: int, rest: Array) -> np.float32:
    """‖x − Σ valueⱼ·rowⱼ‖² over the first n places; what it is the norm of goes to `rest`.

    64 features at a time stay in registers while all rows pass by.
    """
    total, n_features = _F(0), len(x)
    whole = n_features - n_features % WIDTH
    for begin in range(0, whole, WIDTH):
        at = 4 * begin
        total += left_of(
            x.ctypes.data + at, rows.ctypes.data + at, 4 * n_features, places.ctypes.data, values.ctypes.data, n,
            rest.ctypes.data + at,
        )  # fmt: skip
    if whole < n_features:
        left = rest[whole:]  # from 0 on, so that the loops vectorise
        left[:] = x[whole:]
        for j in range(n):
            row, value = rows[places[j], whole:], values[j]
            for i in range(len(left)):
                left[i] -= value * row[i]
        for i in range(len(left)):
            total += left[i] * left[i]
    return total
