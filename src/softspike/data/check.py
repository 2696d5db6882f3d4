"""Can these rows be trained on? One pass, and one sentence where they cannot."""

import numpy as np
import torch
from torch import Tensor

from softspike.data.chunks import Chunk, as_rows, chunks
from softspike.data.error import DataError
from softspike.data.rows import Rows
from softspike.data.standardise import RunningMoments

__all__ = ["DataError", "check_rows"]


def check_rows(
    data: Rows | np.ndarray | Tensor,
    min_samples: int = 2,
    constant: str = "error",
    moments: RunningMoments | None = None,
) -> Rows:
    """As rows, or a DataError: (n_samples, n_features), enough samples, finite in float32, no constant feature.

    constant="keep" lets constant features pass. `moments` are taken on the way, which spares a second pass.
    """
    if constant not in ("error", "keep"):
        raise ValueError(f'constant is {constant!r}, expected "error" or "keep"')
    rows = as_rows(data)
    n, width = len(rows), rows.n_features
    if width == 0:
        raise DataError(f"0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required; give at least one column.")
    if n < min_samples:
        samples = "1 sample" if n == 1 else f"{n} samples"
        raise DataError(f"the data has {samples}, expected at least {min_samples}; give more samples.")
    survey = _Survey()
    for chunk in chunks(rows):
        survey.see(chunk)
        if moments is not None:
            moments.update(chunk.x)
    if survey.n_bad:
        raise _not_finite(rows, survey)
    if constant == "error" and survey.constant.any():
        raise _constant(survey.constant)
    return rows


class _Survey:
    """What one pass finds: values that are not finite, and each feature's range."""

    def __init__(self) -> None:
        self.n_bad = 0
        self.first_bad: tuple[int, int] = (-1, -1)
        self.low: Tensor | None = None  # (D,)
        self.high: Tensor | None = None

    @property
    def constant(self) -> Tensor:
        assert self.low is not None
        assert self.high is not None
        return self.low == self.high

    def see(self, chunk: Chunk) -> None:
        x = chunk.x.cpu()
        # Ten times the speed of torch.aminmax along columns; a single row is its own range, which spares wide ones.
        low, high = (x[0], x[0]) if len(x) == 1 else (x.amin(0), x.amax(0))
        self.low = low if self.low is None else torch.minimum(self.low, low)
        self.high = high if self.high is None else torch.maximum(self.high, high)
        # NaN and Inf show in the range, so clean chunks are not searched.
        if not (_finite(low) and _finite(high)):
            bad = ~torch.isfinite(x)
            if self.n_bad == 0:
                row, column = bad.nonzero()[0].tolist()
                self.first_bad = (chunk.start + row, column)
            self.n_bad += int(bad.sum())


def _finite(x: Tensor) -> bool:
    """By its ends: where a value is NaN, so are they."""
    return not x.numel() or bool(torch.isfinite(x.amin()) & torch.isfinite(x.amax()))


def _not_finite(rows: Rows, survey: _Survey) -> DataError:
    row, column = survey.first_bad
    where = f"row {row}, column {column} (counted from 0)"
    original = getattr(rows, "original", None)
    value = float(rows.take(torch.tensor([row]))[0, column]) if original is None else original(row)[column]
    if np.isfinite(value):
        return DataError(
            f"the data is too large for float32 in {_times(survey.n_bad, 'value')}, the first {value:.3g} at {where}, "
            "expected magnitudes below 3.4e+38; rescale the data."
        )
    name = "NaN" if np.isnan(value) else "infinity"
    return DataError(
        f"the data contains NaN or infinity in {_times(survey.n_bad, 'value')}, the first {name} at {where}, "
        "expected finite numbers; fill those values or drop their samples."
    )


def _constant(constant: Tensor) -> DataError:
    columns = constant.nonzero().flatten().tolist()
    listed = ", ".join(map(str, columns[:5])) + (", …" if len(columns) > 5 else "")
    word = "column" if len(columns) == 1 else "columns"
    return DataError(
        f"the data has {_times(len(columns), 'constant feature')} of {len(constant)} ({word} {listed}, from 0), "
        'expected every feature to vary in float32; drop them, let them pass with constant_features="keep", or rescale '
        "the data where they are not really constant."
    )


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
