"""The pictures of a recovery experiment: reliability beside what was recovered, and the recovered atoms."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from experiments.recovery_summary import pooled

__all__ = ["plot", "plot_atoms"]

_BARS = {"correlation": "latents", "atoms_share": "atoms > .9", "f1": "support F1", "explained_variance": "EV"}


def plot(cells: dict[str, list[dict[str, Any]]], known: str, path: Path) -> None:
    """Left: observed share against forecast, bins pooled over seeds. Right: means over seeds, with each seed a dot."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    left.plot([0, 1], [0, 1], color="0.7", lw=1)
    for number, (method, rows) in enumerate(cells.items()):
        colour = f"C{number}"
        forecast, observed, _ = pooled([row["reliability"] for row in rows])
        ece = np.mean([row["ece"] for row in rows])
        left.plot(forecast, observed, "o-", ms=4, color=colour, label=f"{method} (ECE {ece:.4f})")
        for place, name in enumerate(_BARS):
            values = [row[name] for row in rows]
            x = place + 0.8 * (number + 0.5) / len(cells) - 0.4
            right.bar(x, np.mean(values), 0.8 / len(cells), color=colour, alpha=0.6)
            right.plot([x] * len(values), values, ".", color=colour, ms=4)
    left.set(xlabel="probability said", ylabel="share truly active", title="reliability")
    left.legend(fontsize=8)
    right.set(xticks=range(len(_BARS)), xticklabels=_BARS.values(), ylim=(0, 1.02), title=f"recovery ({known})")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_atoms(cells: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """One panel for each method, of its first seed; cells that were measured before cosines were kept have none."""
    shown = {method: rows[0] for method, rows in cells.items() if "cosines" in rows[0]}
    if not shown:
        return
    figure, axes = plt.subplots(
        1, len(shown), figsize=(3 * len(shown) + 0.8, 3.9), squeeze=False, constrained_layout=True
    )
    for axis, (method, row) in zip(axes[0], shown.items(), strict=True):
        image = axis.imshow(
            np.array(row["cosines"]["percent"]) / 100, cmap="magma", vmin=0, vmax=1, interpolation="nearest"
        )
        axis.set(title=f"{method}: {row['atoms_share']:.0%} of atoms", xlabel="learned atoms", xticks=[], yticks=[])
        axis.title.set_fontsize(10)
    axes[0, 0].set_ylabel("true atoms")
    first = next(iter(shown.values()))
    n, of = len(first["cosines"]["percent"]), first["cosines"]["sources"]
    which = "all," if n == of else f"{n} of {of}, at even distances,"
    figure.suptitle(f"|cosine| of true atoms ({which} most active first) and their partners; one seed", fontsize=10)
    figure.colorbar(image, ax=axes[0].tolist(), shrink=0.7)
    figure.savefig(path, dpi=130)
    plt.close(figure)
