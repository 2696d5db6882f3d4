"""FISTA for all inputs of R replicas in one launch: each program iterates on its rows until their gaps are closed."""

import triton
import triton.language as tl
from torch import Tensor

from softspike.kernels.options import FUSED

__all__ = ["MOST_COMPONENTS", "fista_codes"]

MOST_COMPONENTS = 512  # a row of codes lives in registers


@triton.jit
def _times_gram(rows, gram, b, n_rows, n_components, COMPONENTS: tl.constexpr, INNER: tl.constexpr, ROWS: tl.constexpr):
    """rows·G for the tile of rows in memory, (ROWS, COMPONENTS)."""
    total = tl.zeros((ROWS, COMPONENTS), tl.float32)
    column = tl.arange(0, COMPONENTS)[None, :]
    for start in range(0, n_components, INNER):
        k, i = start + tl.arange(0, INNER)[:, None], start + tl.arange(0, INNER)[None, :]
        left = tl.load(rows + b * n_components + i, (b < n_rows) & (i < n_components), 0.0)
        right = tl.load(gram + k * n_components + column, (k < n_components) & (column < n_components), 0.0)
        total = tl.dot(left, right, total, input_precision="tf32x3")
    return total


@triton.jit
def _gap(z, gram_z, correlation, energy, penalty):
    """The duality gap of the lasso from Gram quantities, as `solver.lasso_gap`; energy is ‖x‖²."""
    overlap = tl.sum(z * correlation, 1)
    residual = energy - 2.0 * overlap + tl.sum(z * gram_z, 1)  # ‖x − Az‖²
    largest = tl.maximum(tl.max(tl.abs(correlation - gram_z), 1), 1e-30)
    scale = tl.minimum(penalty / largest, 1.0)
    primal = 0.5 * residual + penalty * tl.sum(tl.abs(z), 1)
    return primal - scale * (energy - overlap) + 0.5 * scale * scale * residual


@triton.jit
def _fista(
    gram, correlations, energies, codes, points, gaps, bounds, penalties, penalty_of, clock,
    n_rows, n_components, n_steps, tolerance, max_iterations,
    CHECK_EVERY: tl.constexpr, ROWS: tl.constexpr, COMPONENTS: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    r = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    b, column = rows[:, None], tl.arange(0, COMPONENTS)[None, :]
    inside = (b < n_rows) & (column < n_components)
    gram += r * n_components * n_components
    codes += r * n_rows * n_components
    points += r * n_rows * n_components
    place = b * n_components + column
    penalty = tl.load(penalties + tl.load(penalty_of + r).to(tl.int64) * n_steps + tl.load(clock))
    step = 1.0 / tl.load(bounds + r)
    correlation = tl.load(correlations + r * n_rows * n_components + place, inside, 0.0)
    energy = tl.load(energies + r * n_rows + rows, rows < n_rows, 0.0)
    z = correlation * 0.0
    y = z
    t = energy * 0.0 + 1.0
    gap = energy * 0.0
    iteration, going = 0, 1
    while going > 0:
        for _ in range(CHECK_EVERY):
            # Other threads read what this one wrote, and write what it reads: hence a barrier on either side.
            tl.debug_barrier()
            tl.store(points + place, y, inside)
            tl.debug_barrier()
            moved = y - step * (
                _times_gram(points, gram, b, n_rows, n_components, COMPONENTS, INNER, ROWS) - correlation
            )
            size = tl.maximum(tl.abs(moved) - step * penalty, 0.0)
            new = tl.where(moved > 0, size, -size)
            uphill = tl.sum((y - new) * (new - z), 1) > 0
            t = tl.where(uphill, 1.0, t)
            next_t = 0.5 * (1.0 + tl.sqrt(1.0 + 4.0 * t * t))
            y = new + tl.where(uphill, 0.0, (t - 1.0) / next_t)[:, None] * (new - z)
            z, t = new, next_t
        iteration += CHECK_EVERY
        tl.debug_barrier()
        tl.store(codes + place, z, inside)
        tl.debug_barrier()
        gram_z = _times_gram(codes, gram, b, n_rows, n_components, COMPONENTS, INNER, ROWS)
        gap = _gap(z, gram_z, correlation, energy, penalty)
        left = tl.max(tl.where((rows < n_rows) & (gap > 0.5 * tolerance * energy), 1, 0), 0)
        going = tl.where(iteration < max_iterations, left, 0)
    tl.store(gaps + r * n_rows + rows, 2.0 * gap / tl.maximum(energy, 1e-30), rows < n_rows)


def fista_codes(
    gram: Tensor, correlations: Tensor, energies: Tensor, codes: Tensor, points: Tensor, gaps: Tensor,
    bounds: Tensor, penalties: Tensor, penalty_of: Tensor, clock: Tensor, *, tolerance: float, max_iterations: int,
    check_every: int = 10,
) -> None:  # fmt: skip
    """codes (R, B, d) ← argmin ½‖x − Az‖² + λ‖z‖₁ from G = AᵀA, Aᵀx and ‖x‖², from zero; gaps over ½‖x‖² as they end.

    `bounds` (R,) are at least the largest eigenvalues of the Gram matrices; λ is penalties[penalty_of[r], clock].
    """
    n_replicas, n_rows, d = codes.shape
    if d > MOST_COMPONENTS:
        raise ValueError(f"{d} components were given, and this kernel takes at most {MOST_COMPONENTS}")
    _fista[(triton.cdiv(n_rows, 16), n_replicas)](
        gram, correlations, energies, codes, points, gaps, bounds, penalties, penalty_of, clock,
        n_rows, d, penalties.shape[1], tolerance, max_iterations, CHECK_EVERY=check_every, ROWS=16,
        COMPONENTS=max(16, triton.next_power_of_2(d)), INNER=min(32, max(16, triton.next_power_of_2(d))),
        num_warps=8, num_stages=3, **FUSED,
    )  # fmt: skip
