"""The best of J samples without J×B×d in memory: draw, threshold, decode and score tile by tile, then draw it again.

`score` leaves the squared error of each sample, (R, J, B). `redraw` takes the smallest, draws that sample again from
its counters and leaves its code and its noise, (R, B, d).
"""

import triton
import triton.language as tl

from softspike.kernels import settings as column
from softspike.kernels.draws import GAMMA, SPIKE, code_of, pick_of
from softspike.kernels.four import four_codes, four_draws, law_of

__all__ = ["redraw", "score"]


@triton.jit
def score(
    heads, atoms, x, scores, settings, seeds, clock, warm_ups, warm_up_of,
    n_rows, n_features, n_components, n_steps, n_scored,
    N_HEADS: tl.constexpr, LAPLACE: tl.constexpr, FORM: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, COMPONENTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """scores[r, j, b] = ‖x − A·z‖² of four samples of ROWS inputs; z has the precision of the atoms."""
    r = tl.program_id(2).to(tl.int64)
    group = tl.program_id(1)
    settings += r * column.COLUMNS
    n_samples = tl.load(settings + column.N_SAMPLES).to(tl.int32)
    if (n_samples > 1) & (4 * group < n_samples):
        step, seed = tl.load(clock), tl.load(seeds + r)
        warm_up = tl.load(warm_ups + tl.load(warm_up_of + r).to(tl.int64) * n_steps + step)
        heads += r * n_rows * N_HEADS * n_components
        atoms += r * n_features * n_components
        b = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
        stack = tl.arange(0, 4 * ROWS)
        stack_b = tl.program_id(0) * ROWS + stack % ROWS
        total = tl.zeros((4 * ROWS,), tl.float32)
        for first in range(0, n_features, FEATURES):
            f = first + tl.arange(0, FEATURES)[None, :]
            decoded = tl.zeros((4 * ROWS, FEATURES), tl.float32)
            for start in range(0, n_components, COMPONENTS):
                i = start + tl.arange(0, COMPONENTS)[None, :]
                inside = (b < n_rows) & (i < n_components)
                location, scale, chance, unit = law_of(
                    heads, settings, warm_up, b, i, inside, n_components, N_HEADS, LAPLACE, FORM
                )
                draws = four_draws(seed, step, group, b * n_components + i, chance, LAPLACE, FORM)
                z = four_codes(location, scale, unit, draws, ROWS, COMPONENTS, FORM)
                # Rows of atoms past the last are read as 0, so what was drawn for them does not matter.
                k = start + tl.arange(0, COMPONENTS)[:, None]
                a = tl.load(atoms + f * n_components + k, (f < n_features) & (k < n_components), 0.0)
                decoded = tl.dot(z.to(a.dtype), a, decoded, input_precision=PRECISION)
            inside = (stack_b[:, None] < n_rows) & (f < n_features)
            target = tl.load(x + r * n_rows * n_features + stack_b[:, None] * n_features + f, inside, 0.0)
            total += tl.sum((decoded - target) * (decoded - target), 1)
        tl.store(scores + (r * n_scored + 4 * group + stack // ROWS) * n_rows + stack_b, total, stack_b < n_rows)


@triton.jit
def redraw(
    heads, scores, codes, noises, extras, shapes, settings, seeds, clock, warm_ups, warm_up_of, totals,
    n_rows, n_components, n_steps, n_scored, share,
    N_HEADS: tl.constexpr, LAPLACE: tl.constexpr, FORM: tl.constexpr,
    ROWS: tl.constexpr, SAMPLES: tl.constexpr, COMPONENTS: tl.constexpr,
):  # fmt: skip
    """The winner's code z, its noise, and its Gamma draw (with α) or noisy logit, where the family has one."""
    r = tl.program_id(2).to(tl.int64)
    settings += r * column.COLUMNS
    step, seed = tl.load(clock), tl.load(seeds + r)
    warm_up = tl.load(warm_ups + tl.load(warm_up_of + r).to(tl.int64) * n_steps + step)
    b = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None]
    i = (tl.program_id(0) * COMPONENTS + tl.arange(0, COMPONENTS))[None, :]
    n_samples = tl.load(settings + column.N_SAMPLES).to(tl.int32)
    j = tl.arange(0, SAMPLES)[None, :]
    scored = (b < n_rows) & (j < tl.where(n_samples > 1, n_samples, 0))
    winner = tl.argmin(tl.load(scores + (r * n_scored + j) * n_rows + b, scored, float("inf")), 1)
    winner = tl.where(n_samples > 1, winner, 0)[:, None]

    inside = (b < n_rows) & (i < n_components)
    heads += r * n_rows * N_HEADS * n_components
    location, scale, chance, unit = law_of(heads, settings, warm_up, b, i, inside, n_components, N_HEADS, LAPLACE, FORM)
    n0, n1, n2, n3, e0, e1, e2, e3 = four_draws(seed, step, winner // 4, b * n_components + i, chance, LAPLACE, FORM)
    noise, extra = pick_of(n0, n1, n2, n3, winner % 4), pick_of(e0, e1, e2, e3, winner % 4)
    z = code_of(noise, location, scale, extra, unit, FORM)
    place = r * n_rows * n_components + b.to(tl.int64) * n_components + i
    tl.store(codes + place, z, inside)
    tl.store(noises + place, noise, inside)
    if FORM == SPIKE:
        tl.store(extras + place, extra, inside)
    if FORM == GAMMA:
        tl.store(extras + place, tl.maximum(extra, 1.1754943508222875e-38), inside)
        tl.store(shapes + place, chance, inside)
    active = tl.where(inside & (z != 0), 1.0, 0.0)
    tl.atomic_add(totals + r * 3 + 2, share * tl.sum(tl.sum(active, 1), 0))
