"""Launching `score`, `redraw` and `head_slopes` for one family of replicas, with tiles that suit their number."""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from softspike.kernels.draws import Form
from softspike.kernels.options import FUSED
from softspike.kernels.resident import score_resident
from softspike.kernels.slopes import head_slopes
from softspike.kernels.winner import redraw, score

__all__ = ["Form", "Law", "Resident", "Tiled", "Timing", "redraw_winners", "score_samples", "slopes_at_heads"]


@dataclass(frozen=True)
class Law:
    """What a family samples: its base law, and what is done to the draws."""

    laplace: bool
    form: Form

    @property
    def n_heads(self) -> int:
        return {Form.PLAIN: 2, Form.FIXED: 2, Form.GAMMA: 4, Form.SPIKE: 3}[self.form]

    @property
    def draws_levels(self) -> bool:
        return self.form == Form.GAMMA

    @property
    def constants(self) -> dict[str, Any]:
        return {"N_HEADS": self.n_heads, "LAPLACE": self.laplace, "FORM": self.form.value}


@dataclass(frozen=True)
class Timing:
    """What the kernels read of time and chance: the step, the keys of the random numbers, warm-ups, temperatures."""

    clock: Tensor
    keys: Tensor  # (R,)
    warm_ups: Tensor  # (schedules, n_steps)
    warm_up_of: Tensor  # (R,)
    temperatures: Tensor  # (schedules, n_steps)
    temperature_of: Tensor  # (R,)

    @property
    def n_steps(self) -> int:
        return self.warm_ups.shape[1]


_PROGRAMS = 132  # as many as an H100 or H200 has multiprocessors


def _power(size: int, most: int) -> int:
    return min(most, max(16, triton.next_power_of_2(size)))


@dataclass(frozen=True)
class Tiled:
    """`score` with tiles of so many inputs × components."""

    rows: int
    columns: int
    registers: int | None = None  # at most; with 128, two programs fit into a multiprocessor: one waits, one computes


@dataclass(frozen=True)
class Resident:
    """`score_resident` with so many inputs and groups of four samples a program."""

    rows: int
    groups: int


def score_samples(
    law: Law, heads: Tensor, atoms: Tensor, x: Tensor, scores: Tensor, settings: Tensor, time: Timing, precision: str,
    tiles: Tiled | Resident | None = None,
) -> None:  # fmt: skip
    """scores (R, J, B) ← ‖x − A·zⱼ‖², with atoms in float32 or rounded to bfloat16."""
    (n, n_rows, n_features), d, n_scored = x.shape, atoms.shape[2], scores.shape[1]
    tiles = tiles or scoring_tiles(law, atoms, n_rows, n_scored)
    tensors = (heads, atoms, x, scores, settings, time.keys, time.clock, time.warm_ups, time.warm_up_of)
    sizes = (n_rows, n_features, d, time.n_steps, n_scored)
    options = {"FEATURES": _power(n_features, 256), "PRECISION": precision, "num_warps": 8, **FUSED, **law.constants}
    grid = triton.cdiv(n_rows, tiles.rows)
    if isinstance(tiles, Resident):
        score_resident[(grid, triton.cdiv(n_scored // 4, tiles.groups), n)](
            *tensors, *sizes, tiles.groups, ROWS=tiles.rows, COMPONENTS=_power(d, 256), **options
        )
    else:
        limit = {"maxnreg": tiles.registers} if tiles.registers and x.is_cuda else {}
        score[(grid, n_scored // 4, n)](
            *tensors, *sizes, ROWS=tiles.rows, COMPONENTS=tiles.columns, num_stages=2, **options, **limit
        )


def scoring_tiles(law: Law, atoms: Tensor, n_rows: int, n_scored: int) -> Tiled | Resident:
    """What measured best on 132 multiprocessors, which are to have the same number of programs each, or none."""
    n, n_features, d = atoms.shape
    groups = n_scored // 4
    few, eights = triton.cdiv(n_rows, 4) * groups * n <= _PROGRAMS, triton.cdiv(n_rows, 8) * groups * n
    resident = atoms.dtype == torch.bfloat16 and max(n_features, d) <= 256  # 128 KiB of shared memory
    if resident and not law.draws_levels:
        return Resident(4, 1) if few else Resident(8, min(groups, triton.cdiv(eights, _PROGRAMS)))
    if triton.cdiv(n_rows, 16) * groups * n < _PROGRAMS:
        return Tiled(4, 64)
    return Tiled(8 if law.draws_levels else 16, 32, registers=128)


def redraw_winners(
    law: Law, heads: Tensor, scores: Tensor, codes: Tensor, noises: Tensor, extras: Tensor, shapes: Tensor,
    settings: Tensor, time: Timing, totals: Tensor,
) -> None:  # fmt: skip
    """codes, noises, extras, shapes (R, B, d) ← those of the sample with the smallest score."""
    (n, n_rows, d), n_scored = codes.shape, scores.shape[1]
    rows = 2 if law.draws_levels else 4
    redraw[(triton.cdiv(d, 64), triton.cdiv(n_rows, rows), n)](
        heads, scores, codes, noises, extras, shapes, settings, time.keys, time.clock, time.warm_ups, time.warm_up_of,
        totals, n_rows, d, time.n_steps, n_scored, 1 / n_rows, **law.constants,
        ROWS=rows, SAMPLES=triton.next_power_of_2(n_scored), COMPONENTS=64, num_warps=4, **FUSED,
    )  # fmt: skip


def slopes_at_heads(
    law: Law, heads: Tensor, atoms: Tensor, errors: Tensor, codes: Tensor, noises: Tensor, extras: Tensor,
    shapes: Tensor, settings: Tensor, time: Timing, totals: Tensor, precision: str,
) -> None:  # fmt: skip
    """heads (R, B, n_heads·d) ← the loss's gradient there."""
    (n, n_rows, n_features), d = errors.shape, codes.shape[2]
    level_slopes = torch._standard_gamma_grad(shapes, extras) if law.draws_levels else extras
    columns = 32 if n < 4 else 64
    head_slopes[(triton.cdiv(d, columns), triton.cdiv(n_rows, 16), n)](
        heads, atoms, errors, codes, noises, extras, level_slopes, settings, time.clock, time.warm_ups,
        time.warm_up_of, time.temperatures, time.temperature_of, totals,
        n_rows, n_features, d, time.n_steps, 1 / n_rows, **law.constants,
        ROWS=16, FEATURES=_power(n_features, 64), COMPONENTS=columns, PRECISION=precision,
        num_warps=4, num_stages=3, **FUSED,
    )  # fmt: skip
