"""The picture of a recovery experiment: reliability of the probabilities beside what was recovered."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

__all__ = ["plot"]

_BARS = {"correlation": "latents", "atoms_share": "atoms > .9", "f1": "support F1", "explained_variance": "EV"}


def plot(cells: dict[str, list[dict[str, Any]]], known: str, path: Path) -> None:
    """Left: observed share against forecast, bins pooled over seeds. Right: means over seeds, with each seed a dot."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), constrained_layout=True)
    left.plot([0, 1], [0, 1], color="0.7", lw=1)
    for number, (method, rows) in enumerate(cells.items()):
        colour = f"C{number}"
        forecast, observed = _pooled([row["reliability"] for row in rows])
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


def _pooled(diagrams: list[list[list[float | None]]]) -> tuple[np.ndarray, np.ndarray]:
    """Bins of several seeds merged by their counts; empty ones left out."""
    stacked = np.array(diagrams, dtype=float)  # (seeds, forecast | observed | count, bins), NaN where empty
    count = stacked[:, 2]
    total = count.sum(0)
    forecast, observed = ((np.nan_to_num(stacked[:, i]) * count).sum(0) for i in (0, 1))
    some = total > 0
    return forecast[some] / total[some], observed[some] / total[some]
