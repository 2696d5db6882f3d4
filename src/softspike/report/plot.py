"""matplotlib figures, saved without a display."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from softspike.disk import write_atomically

__all__ = ["figure_saved"]


@contextmanager
def figure_saved(path: Path, n_rows: int, n_columns: int, size: tuple[float, float], note: str) -> Iterator[Any]:
    """Axes to draw on, as a flat array; written to `path` with the note beneath when the block ends."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    yield np.atleast_1d(figure.subplots(n_rows, n_columns)).ravel()
    figure.supxlabel(note, fontsize=8, color="0.4")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110, metadata={"Software": None}, format=path.suffix.lstrip("."))
    write_atomically(path, buffer.getvalue())
