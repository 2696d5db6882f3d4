"""What is known of a run that has not been measured: the figures of the last batch that it logged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from softspike.report.table import Line

__all__ = ["Last", "last_figures", "last_lines"]


class Last(NamedTuple):
    """Of one batch, so rough; None where it is not known."""

    step: int
    error: float | None = None  # mean of (x − x̂)²
    explained: float | None = None
    active: float | None = None


def last_figures(config: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> Last:
    if not log:
        return Last(0)
    settings = config.get("estimator") or {}
    error, active = (_finite(log[-1].get(name)) for name in ("misfit", "active"))
    # Only of data that is centred and scaled to the variance 1 is the error the share that is not explained.
    scaled = settings.get("generator") == "dictionary" and not settings.get("positive")
    return Last(int(log[-1]["step"]), error, 1 - error if scaled and error is not None else None, active)


def last_lines(config: Mapping[str, Any], log: Sequence[Mapping[str, Any]]) -> list[Line]:
    """The same as lines of a table."""
    last, asked = last_figures(config, log), _finite((config.get("estimator") or {}).get("n_active"))
    note = f"of the batch at step {last.step}"
    lines: list[Line] = []
    if last.explained is not None:
        lines.append(("explained variance, roughly", f"{last.explained:.2f}", note))
    elif last.error is not None:
        lines.append(("mean squared error, roughly", f"{last.error:.4g}", note))
    if last.active is not None:
        target = f", asked for {asked:.1f}" if asked else ""
        lines.append(("active components, roughly", f"{last.active:.1f}", note + target))
    return lines


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
