"""The pictures of the deep study: curves of the error, and what the models of the middle dimension have learned."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softspike.report.pictures import save_grid
from softspike.report.plot import figure_saved
from softspike.reproduce.deep.cell import DENSE, METHODS
from softspike.reproduce.deep.paper import BY_DIMENSION, BY_SPARSITY
from softspike.reproduce.deep.rows import Records, methods_in
from softspike.reproduce.deep.setting import DeepSetting

__all__ = ["Learned", "attribute_order", "draw_curves", "draw_learned"]

Learned = Mapping[str, Mapping[str, np.ndarray]]  # method → its pictures


def draw_curves(setting: DeepSetting, records: Records, path: Path) -> Path:
    """The error over dimensions and over shares; ours solid, the paper's dashed. Needs matplotlib."""
    with figure_saved(path, 1, 2, (11, 4.4), setting.title) as (left, right):
        for number, method in enumerate(methods_in(records)):
            colour = f"C{number}"
            ours = [(d, records.value(method, d, setting.share, "error.best")) for d in setting.dimensions]
            _line(left, ours, colour, "-", METHODS[method])
            _line(left, list(BY_DIMENSION[setting.name].get(method, {}).items()), colour, "--")
            if method != DENSE:
                shares = [(p, records.value(method, setting.middle, p, "error.best")) for p in setting.shares]
                _line(right, shares, colour, "-", METHODS[method])
                _line(right, list(BY_SPARSITY[setting.name].get(method, {}).items()), colour, "--")
        left.set(xscale="log", xlabel="dimension", ylabel=f"error per pixel, best of {setting.n_samples}")
        right.set(xscale="log", xlabel=f"active share (d = {setting.middle})")
        if left.get_legend_handles_labels()[0]:  # dimensions that are not the paper's have no point here
            left.legend(fontsize=7, title="ours solid, the paper dashed", title_fontsize=7)
    return path


def _line(axes: Any, points: list[tuple[Any, Any]], colour: str, style: str, label: str | None = None) -> None:
    known = [(x, y) for x, y in points if y is not None]
    if known:
        axes.plot(*zip(*known, strict=True), style, color=colour, marker="o", markersize=3, label=label, linewidth=1.2)


def draw_learned(
    setting: DeepSetting, learned: Learned, folder: Path, stem: str, originals: bool = True
) -> dict[str, Path]:
    """Reconstructions, samples, dictionaries, traversals and attribute atoms, one row or more for each model."""
    above = [next(iter(learned.values()))["originals"]] if originals else []
    rows: dict[str, list[np.ndarray]] = {
        "reconstructions": [*above, *(m["reconstructions"] for m in learned.values())],
        "samples": [m["samples"] for m in learned.values()],
        "dictionaries": [row for m in learned.values() for row in np.array_split(m["atoms"], 3)],
        "traversals": [row for m in learned.values() for row in m["traversals"][:3]],
        "attributes": [m["attribute_atoms"][attribute_order(learned)[:12]] for m in learned.values()],
    }
    written = {}
    for name, images in rows.items():
        written[name] = folder / f"{stem}-{name}.png"
        save_grid(written[name], [row / 255 for row in images], setting.image_shape)
    return written


def attribute_order(learned: Learned) -> np.ndarray:
    """Attributes by the largest absolute correlation that any model's component has with them."""
    strongest = np.max([np.abs(m["attribute_correlations"]) for m in learned.values()], axis=0)
    return np.argsort(-strongest)
