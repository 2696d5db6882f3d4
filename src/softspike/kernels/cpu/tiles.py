"""A tile of a weight, moved by SGD along its part of gᵀx: the gradient is summed in registers and never written.

In LLVM's own words, as no loop becomes that by itself. Weight and momentum are asked for before the sum begins and
have arrived when it is done.
"""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["HIGH", "PAIRS", "WIDE", "low_tile_moved", "tile_moved"]

_FEATURES = binding.get_host_cpu_features()
_LANES = 16 if _FEATURES.get("avx512f") else 8
HIGH, WIDE = (8, 32) if _FEATURES.get("avx512f") else (4, 16)  # of a tile; its sums fill half of the registers
PAIRS = bool(_FEATURES.get("avx512bf16"))  # whether there is an instruction for pairs of products in bfloat16
_FLOAT, _WORD, _LONG, _JOIN, _LINE = ir.FloatType(), ir.IntType(32), ir.IntType(64), ("contract",), 64
_MANY = ir.VectorType(_FLOAT, _LANES)


class _BFloat16(ir.Type):
    """LLVM's own, which llvmlite does not name."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat16)

    def __hash__(self) -> int:
        return hash(_BFloat16)


def _product(builder: Any, total: Any, one: Any, many: Any) -> Any:
    """total + one·many."""
    return builder.fadd(total, builder.fmul(one, many, flags=_JOIN), flags=_JOIN)


def _two_products(builder: Any, total: Any, one: Any, many: Any) -> Any:
    """The same of words that hold two numbers each."""
    pairs = ir.VectorType(_BFloat16(), 2 * _LANES)
    kind = ir.FunctionType(_MANY, [_MANY, pairs, pairs])
    both = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512bf16.dpbf16ps.512")
    return builder.call(both, [total, builder.bitcast(one, pairs), builder.bitcast(many, pairs)])


def _at(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    return builder.inttoptr(builder.add(address, _LONG(offset)), kind.as_pointer())


def _same(builder: Any, one: Any) -> Any:
    """A vector of one number."""
    first = builder.insert_element(ir.Constant(_MANY, ir.Undefined), one, _WORD(0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(_WORD, _LANES), None))


def _fetched(builder: Any, address: Any, n_bytes: int) -> None:
    """These lines of memory will be written to soon."""
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, _WORD, _WORD, _WORD])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for at in range(0, n_bytes, _LINE):
        builder.call(call, [_at(builder, address, at, ir.IntType(8)), _WORD(1), _WORD(3), _WORD(1)])


def _summed(builder: Any, add: Any, slopes: Any, inputs: Any, n: Any) -> list[list[Any]]:
    """Σ over n words of a line of g's panel, each number times the line of x's panel: HIGH rows of a tile."""
    sums = [[cgutils.alloca_once(builder, _MANY) for _ in range(WIDE // _LANES)] for _ in range(HIGH)]
    for row in sums:
        for total in row:
            builder.store(ir.Constant(_MANY, None), total)
    with cgutils.for_range(builder, n) as turn:
        slope = builder.add(slopes, builder.mul(turn.index, _LONG(4 * HIGH)))
        line = builder.add(inputs, builder.mul(turn.index, _LONG(4 * WIDE)))
        parts = [builder.load(_at(builder, line, 4 * k, _MANY), align=4) for k in range(0, WIDE, _LANES)]
        for i, row in enumerate(sums):
            one = _same(builder, builder.load(_at(builder, slope, 4 * i, _FLOAT), align=4))
            for total, many in zip(row, parts, strict=True):
                builder.store(add(builder, builder.load(total), one, many), total)
    return [[builder.load(total) for total in row] for row in sums]


def _moved(builder: Any, grad: Any, weight: Any, momentum: Any, by: list[Any], nesterov: Any) -> Any:
    """m ← μm + G and w ← w − rate·m, or − rate·(G + μm), at two addresses, G = grad + decay·w; the new w."""
    rate, decay, kept = by
    before = builder.load(weight, align=4)
    slope = _product(builder, grad, decay, before)
    pace = _product(builder, slope, kept, builder.load(momentum, align=4))
    way = builder.select(nesterov, _product(builder, slope, kept, pace), pace)
    after = builder.fsub(before, builder.fmul(rate, way, flags=_JOIN), flags=_JOIN)
    builder.store(pace, momentum, align=4)
    builder.store(after, weight, align=4)
    return after


def _tile(add: Any, low: bool) -> Any:
    """The intrinsic: panels of g and x at two addresses and n words deep; a tile of the weight, of its momentum and
    of its copy in bfloat16 at three, whose rows are `stride` numbers apart; rate, decay, μ, and whether Nesterov's."""

    def tile(
        typing: Any, slopes: Any, inputs: Any, n: Any, weight: Any, momentum: Any, copy: Any, stride: Any, rate: Any,
        decay: Any, kept: Any, nesterov: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            slopes, inputs, n, weight, momentum, copy, stride, *by, nesterov = values
            rows = [builder.mul(stride, _LONG(i)) for i in range(HIGH)]
            places = [(weight, 4), (momentum, 4), (copy, 2)][: 3 if low else 2]
            starts = [[builder.add(a, builder.mul(row, _LONG(size))) for a, size in places] for row in rows]
            for start in starts:
                for address, (_, size) in zip(start, places, strict=True):
                    _fetched(builder, address, size * WIDE)
            sums = _summed(builder, add, slopes, inputs, n)
            by = [_same(builder, one) for one in by]
            for start, row in zip(starts, sums, strict=True):
                for k, grad in enumerate(row):
                    w, m = (_at(builder, address, 4 * _LANES * k, _MANY) for address in start[:2])
                    after = _moved(builder, grad, w, m, by, builder.trunc(nesterov, ir.IntType(1)))
                    if low:
                        short = ir.VectorType(_BFloat16(), _LANES)
                        rounded = builder.fptrunc(after, short)
                        builder.store(rounded, _at(builder, start[2], 2 * _LANES * k, short), align=2)
            return context.get_dummy_value()

        long, float32 = types.int64, types.float32
        return types.void(*[long] * 7, *[float32] * 3, types.boolean), generate

    return intrinsic(tile)


tile_moved: Any = _tile(_product, low=False)
low_tile_moved: Any = _tile(_two_products, low=True) if PAIRS else tile_moved  # only for where there are PAIRS
