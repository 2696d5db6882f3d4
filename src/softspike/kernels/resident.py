"""Scoring many samples of few inputs, where the dictionary is small enough to stay with the program that reads it.

`winner.score` reads all atoms for every four samples of a tile of inputs. With many samples and few inputs that is most
of its time; here a program reads heads, inputs and atoms once and then only draws, decodes and compares.
"""

import triton
import triton.language as tl

from softspike.kernels import settings as column
from softspike.kernels.four import four_codes_beside, four_draws, law_of

__all__ = ["score_resident"]


@triton.jit
def score_resident(
    heads, atoms, x, scores, settings, seeds, clock, warm_ups, warm_up_of,
    n_rows, n_features, n_components, n_steps, n_scored, n_groups,
    N_HEADS: tl.constexpr, LAPLACE: tl.constexpr, FORM: tl.constexpr,
    ROWS: tl.constexpr, FEATURES: tl.constexpr, COMPONENTS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """As `winner.score`, for `n_groups` groups of four samples a program; COMPONENTS ≥ d and FEATURES ≥ D."""
    r = tl.program_id(2).to(tl.int64)
    settings += r * column.COLUMNS
    n_samples = tl.load(settings + column.N_SAMPLES).to(tl.int32)
    first = tl.program_id(1) * n_groups
    last = tl.minimum(first + n_groups, tl.where(n_samples > 1, tl.cdiv(n_samples, 4), 0))
    if first < last:
        step, seed = tl.load(clock), tl.load(seeds + r)
        warm_up = tl.load(warm_ups + tl.load(warm_up_of + r).to(tl.int64) * n_steps + step)
        heads += r * n_rows * N_HEADS * n_components
        b = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[None, :]
        # A factor of 1 that the compiler cannot know hides that components lie side by side in memory. It would give a
        # lane four of them, and the 32 lanes of a warp would then write their codes through one bank.
        i = tl.arange(0, COMPONENTS)[:, None] * (n_samples > 0).to(tl.int32)
        f, k = tl.arange(0, FEATURES)[:, None], tl.arange(0, COMPONENTS)[None, :]
        # Columns of atoms past the last are read as 0, so what was drawn for them does not matter.
        a = tl.load(
            atoms + r * n_features * n_components + f * n_components + k, (f < n_features) & (k < n_components), 0.0
        )
        stack = tl.arange(0, 4 * ROWS)
        stack_b = tl.program_id(0) * ROWS + stack // 4
        inside = (stack_b[None, :] < n_rows) & (f < n_features)
        target = tl.load(x + r * n_rows * n_features + stack_b[None, :] * n_features + f, inside, 0.0)
        drawn = (b < n_rows) & (i < n_components)
        location, scale, chance, unit = law_of(
            heads, settings, warm_up, b, i, drawn, n_components, N_HEADS, LAPLACE, FORM
        )
        for turn in range(last - first):
            group = first + turn
            draws = four_draws(seed, step, group, b * n_components + i, chance, LAPLACE, FORM)
            z = four_codes_beside(location, scale, unit, draws, ROWS, COMPONENTS, FORM)
            error = tl.dot(a, z.to(a.dtype), input_precision=PRECISION) - target
            place = scores + (r * n_scored + 4 * group + stack % 4) * n_rows + stack_b
            tl.store(place, tl.sum(error * error, 0), stack_b < n_rows)
