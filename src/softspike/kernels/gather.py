"""The batch of each replica, taken from data that lives on the device."""

import triton
import triton.language as tl
from torch import Tensor

from softspike.kernels.options import FUSED

__all__ = ["gather"]


@triton.jit
def _gather(
    data, order, order_of, clock, out, n_data, n_rows, n_features, per_epoch,
    ROWS: tl.constexpr, FEATURES: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    position = (tl.load(clock) % per_epoch) * n_rows + b
    row = tl.load(order + tl.load(order_of + r).to(tl.int64) * n_data + position, b < n_rows, 0)
    for start in range(0, n_features, FEATURES):
        f = (start + tl.arange(0, FEATURES))[None, :]
        inside = (b[:, None] < n_rows) & (f < n_features)
        value = tl.load(data + row[:, None].to(tl.int64) * n_features + f, inside, 0.0)
        tl.store(out + (r * n_rows + b[:, None]) * n_features + f, value, inside)


def gather(data: Tensor, order: Tensor, order_of: Tensor, clock: Tensor, out: Tensor) -> None:
    """out (R, B, D) ← the step's rows of data, in the order (seeds, N) of this epoch's permutations."""
    n_replicas, n_rows, n_features = out.shape
    rows = 16
    _gather[(triton.cdiv(n_rows, rows), n_replicas)](
        data, order, order_of, clock, out, order.shape[1], n_rows, n_features, order.shape[1] // n_rows,
        ROWS=rows, FEATURES=min(256, triton.next_power_of_2(n_features)), num_warps=4, **FUSED,
    )  # fmt: skip
