"""Affine layers of R replicas at once, forward and backward, each with its neighbours fused in.

Activations are (R, B, width), weights (R, out, in). `descend` never writes a gradient: it is added to the momentum and
taken off the weights in the tile that computes it.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from softspike.kernels.options import FUSED

__all__ = ["Tiles", "decoding_error", "descend", "forward", "input_gradient"]


@triton.jit
def _forward(
    x, weight, bias, out, n_rows, n_in, n_out,
    RELU: tl.constexpr, ROWS: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(2).to(tl.int64)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    o = tl.program_id(0) * OUT + tl.arange(0, OUT)
    x += r * n_rows * n_in
    weight += r * n_out * n_in
    total = tl.zeros((ROWS, OUT), tl.float32)
    for start in range(0, n_in, IN):
        i = start + tl.arange(0, IN)
        left = tl.load(x + b[:, None] * n_in + i[None, :], (b[:, None] < n_rows) & (i[None, :] < n_in), 0.0)
        right = tl.load(weight + o[None, :] * n_in + i[:, None], (o[None, :] < n_out) & (i[:, None] < n_in), 0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    total += tl.load(bias + r * n_out + o, o < n_out, 0.0)[None, :]
    if RELU:
        total = tl.maximum(total, 0.0)
    place = b[:, None].to(tl.int64) * n_out + o[None, :]
    tl.store(out + r * n_rows * n_out + place, total, (b[:, None] < n_rows) & (o[None, :] < n_out))


@triton.jit
def _decoding_error(
    codes, atoms, x, out, totals, n_rows, n_components, n_features, share,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, COMPONENTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(2).to(tl.int64)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    f = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)[None, :]
    codes += r * n_rows * n_components
    atoms += r * n_features * n_components
    total = tl.zeros((ROWS, FEATURES), tl.float32)
    for start in range(0, n_components, COMPONENTS):
        i, k = start + tl.arange(0, COMPONENTS)[None, :], start + tl.arange(0, COMPONENTS)[:, None]
        z = tl.load(codes + b.to(tl.int64) * n_components + i, (b < n_rows) & (i < n_components), 0.0)
        a = tl.load(atoms + f * n_components + k, (f < n_features) & (k < n_components), 0.0)
        total = tl.dot(z, a, total, input_precision=PRECISION)
    inside = (b < n_rows) & (f < n_features)
    place = r * n_rows * n_features + b * n_features + f
    error = tl.where(inside, total - tl.load(x + place, inside, 0.0), 0.0)
    tl.store(out + place, error, inside)
    tl.atomic_add(totals + r * 3, share * tl.sum(tl.sum(error * error, 1), 0) / n_features)


@triton.jit
def _input_gradient(
    slope, weight, activation, out, n_rows, n_in, n_out,
    ROWS: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(2).to(tl.int64)
    b = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    i = tl.program_id(0) * IN + tl.arange(0, IN)
    slope += r * n_rows * n_out
    weight += r * n_out * n_in
    total = tl.zeros((ROWS, IN), tl.float32)
    for start in range(0, n_out, OUT):
        o = start + tl.arange(0, OUT)
        place = b[:, None].to(tl.int64) * n_out + o[None, :]
        left = tl.load(slope + place, (b[:, None] < n_rows) & (o[None, :] < n_out), 0.0)
        right = tl.load(weight + o[:, None] * n_in + i[None, :], (o[:, None] < n_out) & (i[None, :] < n_in), 0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    place = r * n_rows * n_in + b[:, None] * n_in + i[None, :]
    inside = (b[:, None] < n_rows) & (i[None, :] < n_in)
    tl.store(out + place, tl.where(tl.load(activation + place, inside, 0.0) > 0, total, 0.0), inside)


@triton.jit
def _descend(
    slope, x, weight, momentum, bias, bias_momentum, rates, clock, n_rows, n_in, n_out, scale, decay, inertia,
    MOMENTUM: tl.constexpr, BIAS: tl.constexpr,
    ROWS: tl.constexpr, OUT: tl.constexpr, IN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(2).to(tl.int64)
    o = tl.program_id(1) * OUT + tl.arange(0, OUT)
    i = tl.program_id(0) * IN + tl.arange(0, IN)
    rate = tl.load(rates + tl.load(clock))
    slope += r * n_rows * n_out
    x += r * n_rows * n_in
    gradient = tl.zeros((OUT, IN), tl.float32)
    bias_gradient = tl.zeros((OUT,), tl.float32)
    for start in range(0, n_rows, ROWS):
        b = start + tl.arange(0, ROWS)
        left = tl.load(
            slope + b[None, :].to(tl.int64) * n_out + o[:, None], (b[None, :] < n_rows) & (o[:, None] < n_out), 0.0
        )
        right = tl.load(
            x + b[:, None].to(tl.int64) * n_in + i[None, :], (b[:, None] < n_rows) & (i[None, :] < n_in), 0.0
        )
        gradient = tl.dot(left, right, gradient, input_precision=PRECISION)
        if BIAS:
            bias_gradient += tl.sum(left, 1)
    place = r * n_out * n_in + o[:, None].to(tl.int64) * n_in + i[None, :]
    inside = (o[:, None] < n_out) & (i[None, :] < n_in)
    value = tl.load(weight + place, inside, 0.0)
    gradient = scale * gradient + decay * value
    if MOMENTUM:
        speed = inertia * tl.load(momentum + place, inside, 0.0) + gradient
        tl.store(momentum + place, speed, inside)
        gradient += inertia * speed
    tl.store(weight + place, value - rate * gradient, inside)
    if BIAS and tl.program_id(0) == 0:
        place_o = r * n_out + o
        speed_o = inertia * tl.load(bias_momentum + place_o, o < n_out, 0.0) + scale * bias_gradient
        tl.store(bias_momentum + place_o, speed_o, o < n_out)
        moved = tl.load(bias + place_o, o < n_out, 0.0) - rate * (scale * bias_gradient + inertia * speed_o)
        tl.store(bias + place_o, moved, o < n_out)


class Tiles(NamedTuple):
    """How a product is cut: an output tile of rows × columns, `inner` of the summed dimension at a time."""

    rows: int
    columns: int
    inner: int
    warps: int = 4
    stages: int = 3

    def within(self, n_rows: int, n_columns: int, n_inner: int) -> "Tiles":
        """No larger than the product itself, no smaller than the matrix units take."""
        return self._replace(
            rows=_within(self.rows, n_rows),
            columns=_within(self.columns, n_columns),
            inner=_within(self.inner, n_inner),
        )


def _within(tile: int, size: int) -> int:
    return max(16, min(tile, triton.next_power_of_2(size)))


def forward(
    x: Tensor, weight: Tensor, bias: Tensor, out: Tensor, *, relu: bool, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> None:  # fmt: skip
    """out ← x·Wᵀ + bias, with ReLU if asked for."""
    (n_replicas, n_rows, n_in), n_out = x.shape, weight.shape[1]
    t = (tiles or _forward_tiles(n_replicas)).within(n_rows, n_out, n_in)
    grid = (triton.cdiv(n_out, t.columns), triton.cdiv(n_rows, t.rows), n_replicas)
    _forward[grid](
        x, weight, bias, out, n_rows, n_in, n_out, RELU=relu, ROWS=t.rows, OUT=t.columns, IN=t.inner,
        PRECISION=precision, num_warps=t.warps, num_stages=t.stages, **FUSED,
    )  # fmt: skip


def decoding_error(
    codes: Tensor, atoms: Tensor, x: Tensor, out: Tensor, totals: Tensor, *, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> None:  # fmt: skip
    """out ← z·Aᵀ − x, and the batch mean of mean (x̂ − x)² added to totals[:, 0]."""
    (n_replicas, n_rows, d), n_features = codes.shape, x.shape[2]
    t = (tiles or _decoding_tiles(n_replicas)).within(n_rows, n_features, d)
    grid = (triton.cdiv(n_features, t.columns), triton.cdiv(n_rows, t.rows), n_replicas)
    _decoding_error[grid](
        codes, atoms, x, out, totals, n_rows, d, n_features, 1 / n_rows, ROWS=t.rows, FEATURES=t.columns,
        COMPONENTS=t.inner, PRECISION=precision, num_warps=t.warps, num_stages=t.stages, **FUSED,
    )  # fmt: skip


def input_gradient(
    slope: Tensor, weight: Tensor, activation: Tensor, out: Tensor, *, precision: str = "tf32",
    tiles: Tiles | None = None,
) -> None:  # fmt: skip
    """out ← (slope·W)·1[activation > 0]: back through a layer whose input came out of a ReLU."""
    n_replicas, n_rows, n_out = slope.shape
    n_in = weight.shape[2]
    t = (tiles or _backward_tiles(n_replicas)).within(n_rows, n_in, n_out)
    grid = (triton.cdiv(n_in, t.columns), triton.cdiv(n_rows, t.rows), n_replicas)
    _input_gradient[grid](
        slope, weight, activation, out, n_rows, n_in, n_out, ROWS=t.rows, OUT=t.inner, IN=t.columns,
        PRECISION=precision, num_warps=t.warps, num_stages=t.stages, **FUSED,
    )  # fmt: skip


def descend(
    slope: Tensor, x: Tensor, weight: Tensor, rates: Tensor, clock: Tensor, *, scale: float = 1.0, decay: float = 0.0,
    momentum: Tensor | None = None, bias: Tensor | None = None, bias_momentum: Tensor | None = None,
    inertia: float = 0.0, precision: str = "tf32", tiles: Tiles | None = None,
) -> None:  # fmt: skip
    """W ← W − rate·(g + inertia·m), m ← inertia·m + g, with g = scale·slopeᵀx + decay·W: Nesterov's step, in place.

    Without momentum it is plain descent. The rate is rates[clock].
    """
    n_replicas, n_rows, n_out = slope.shape
    n_in = x.shape[2]
    t = (tiles or _descent_tiles(momentum is not None)).within(n_out, n_in, n_rows)
    grid = (triton.cdiv(n_in, t.columns), triton.cdiv(n_out, t.rows), n_replicas)
    _descend[grid](
        slope, x, weight, weight if momentum is None else momentum, weight if bias is None else bias,
        weight if bias_momentum is None else bias_momentum, rates, clock, n_rows, n_in, n_out, scale, decay, inertia,
        MOMENTUM=momentum is not None, BIAS=bias is not None, ROWS=t.inner, OUT=t.rows, IN=t.columns,
        PRECISION=precision, num_warps=t.warps, num_stages=t.stages, **FUSED,
    )  # fmt: skip


# The fastest of those that were timed on an H200. Few replicas: small tiles, so that every multiprocessor has one.
# Many: each weight is read once.


def _forward_tiles(n_replicas: int) -> Tiles:
    if n_replicas < 4:
        return Tiles(16, 32, 128, warps=2, stages=4)
    return Tiles(64, 64, 32, stages=4) if n_replicas < 16 else Tiles(128, 64, 32, stages=4)


def _backward_tiles(n_replicas: int) -> Tiles:
    if n_replicas < 4:
        return Tiles(16, 32, 128)
    return Tiles(32, 64, 64) if n_replicas < 16 else Tiles(32, 128, 32, stages=4)


def _decoding_tiles(n_replicas: int) -> Tiles:
    return Tiles(16, 32, 128) if n_replicas < 4 else Tiles(64, 64, 64)


def _descent_tiles(has_momentum: bool) -> Tiles:
    return Tiles(32, 64, 128, stages=1) if has_momentum else Tiles(32, 64, 64, stages=2)
