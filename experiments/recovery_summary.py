"""What the cells of a recovery experiment say together."""

from typing import Any

import numpy as np

__all__ = ["pooled", "summarise"]

_BY_SEED = ("correlation", "ece", "coverage_active", "dead_training")


def summarise(cells: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Mean and standard deviation over seeds of every figure, and the reliability diagram of all seeds, by method."""
    table: dict[str, Any] = {}
    for method, rows in cells.items():
        known = [name for name, value in rows[0].items() if isinstance(value, float | int)]
        names = [name for name in known if all(name in row for row in rows)]  # older cells may lack a figure
        values = {name: [row[name] for row in rows] for name in names}
        table[method] = {name: [float(np.mean(v)), float(np.std(v))] for name, v in values.items()}
        table[method] |= {f"{name}_by_seed": values[name] for name in _BY_SEED if name in values}
        columns = zip(("forecast", "observed", "count"), pooled([row["reliability"] for row in rows]), strict=True)
        table[method]["reliability"] = {name: [round(float(v), 5) for v in column] for name, column in columns}
    return table


def pooled(diagrams: list[list[list[float | None]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecast, observed and count of the bins of several seeds, merged by their counts; empty ones left out."""
    stacked = np.array(diagrams, dtype=float)  # (seeds, forecast | observed | count, bins), NaN where empty
    count = stacked[:, 2]
    total = count.sum(0)
    forecast, observed = ((np.nan_to_num(stacked[:, i]) * count).sum(0) for i in (0, 1))
    some = total > 0
    return forecast[some] / total[some], observed[some] / total[some], total[some]
