"""Launching `score`, `redraw` and `head_slopes` for one family of replicas, with tiles that suit their number."""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from softspike.kernels.slopes import head_slopes
from softspike.kernels.winner import redraw, score

__all__ = ["Law", "Timing", "redraw_winners", "score_samples", "slopes_at_heads"]


@dataclass(frozen=True)
class Law:
    """What a family samples: its base law, and what is done to the draws (the numbers of `draws`)."""

    laplace: bool
    form: int

    @property
    def n_heads(self) -> int:
        return (2, 2, 4, 3)[self.form]

    @property
    def draws_levels(self) -> bool:
        return self.form == 2

    @property
    def constants(self) -> dict[str, Any]:
        return {"N_HEADS": self.n_heads, "LAPLACE": self.laplace, "FORM": self.form}


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


def _power(size: int, most: int) -> int:
    return min(most, max(16, triton.next_power_of_2(size)))


def score_samples(
    law: Law, heads: Tensor, atoms: Tensor, x: Tensor, scores: Tensor, settings: Tensor, time: Timing, precision: str
) -> None:
    """scores (R, J, B) ← ‖x − A·zⱼ‖², with atoms in float32 or rounded to bfloat16."""
    (n, n_rows, n_features), d, n_scored = x.shape, atoms.shape[2], scores.shape[1]
    crowded = triton.cdiv(n_rows, 16) * (n_scored // 4) * n >= 132  # more programs than multiprocessors
    rows, columns = ((8 if law.draws_levels else 16), 32) if crowded else (4, 64)
    # With 128 registers two programs fit into a multiprocessor: one computes while the other waits.
    two_at_once = {"maxnreg": 128} if crowded and x.is_cuda else {}
    score[(triton.cdiv(n_rows, rows), n_scored // 4, n)](
        heads, atoms, x, scores, settings, time.keys, time.clock, time.warm_ups, time.warm_up_of,
        n_rows, n_features, d, time.n_steps, n_scored, **law.constants,
        ROWS=rows, FEATURES=_power(n_features, 256), COMPONENTS=columns, PRECISION=precision,
        num_warps=8, num_stages=2, **two_at_once,
    )  # fmt: skip


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
        ROWS=rows, SAMPLES=triton.next_power_of_2(n_scored), COMPONENTS=64, num_warps=4,
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
        num_warps=4, num_stages=3,
    )  # fmt: skip
