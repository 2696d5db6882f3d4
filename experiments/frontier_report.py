"""Finished cells → a Markdown table and a figure for each data set and dictionary size, and the sparsity sweep."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.frontier_cell import OURS

__all__ = ["write_report"]

Results = list[dict[str, Any]]
_LABELS = {OURS: "softspike", "batchtopk": "BatchTopK", "jumprelu": "JumpReLU", "topk": "TopK"}
_RIVALS = {
    "omp_tolerance": "OMP, one tolerance", "omp_fixed": "OMP, fixed count", "fista": "FISTA",
    "fista_refit": "FISTA, refitted",
}  # fmt: skip
_COLOURS = {OURS: "#0b5fa5", "batchtopk": "#d1702a", "jumprelu": "#3d8f5f", "topk": "#9a57a3"}


def write_report(folder: Path) -> list[Path]:
    """frontier.md, and one PNG for each frontier."""
    results = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    groups: dict[tuple[str, int], Results] = defaultdict(list)
    for result in results:
        if result["rivals"]:
            groups[result["cell"]["data"], result["cell"]["components"]].append(result)
    parts, written = [], []
    for (data, components), group in sorted(groups.items()):
        best = _best(group)
        parts.append(f"## {data}, d = {components}\n\n{_table(best)}")
        written.append(_figure(best, f"{data}, d = {components}", folder / f"frontier-{data}-{components}.png"))
    sweep = [r for r in results if not r["rivals"] and r["cell"]["method"] == OURS]
    if sweep:
        parts.append(f"## Asked and measured sparsity\n\n{_sweep(sweep)}")
    text = folder / "frontier.md"
    text.write_text("\n\n".join(parts) + "\n")
    return [text, *written]


def _best(group: Results) -> dict[tuple[str, float], Results]:
    """(method, count) → the seeds of the settings, if several, that explain most."""
    settings: dict[tuple[str, float], dict[tuple, Results]] = defaultdict(lambda: defaultdict(list))
    for result in group:
        cell = result["cell"]
        setting = (cell["steps"], cell["batch"], cell["learning_rate"], cell["encoder_steps"])
        settings[cell["method"], cell["active"]][setting].append(result)
    return {key: max(found.values(), key=lambda r: _mean(r, "explained_variance")) for key, found in settings.items()}


def _mean(results: Iterable[Mapping[str, Any]], name: str) -> float:
    return mean(float(result[name]) for result in results)


def _rival(results: Results, name: str) -> float:
    """Moved by what the code itself scores on the solvers' patches and on all of them: as if solved on all."""
    return mean(r["rivals"][name] - r["rivals"]["own"] + r["explained_variance"] for r in results)


def _table(best: dict[tuple[str, float], Results]) -> str:
    head = ["method", "asked", "active", "EV", *_RIVALS.values(), "dead %", "worst patch", "steps", "seeds", "train s"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for (method, count), results in sorted(best.items(), key=lambda item: (list(_LABELS).index(item[0][0]), item[0][1])):
        score = f"{_mean(results, 'explained_variance'):.4f}"
        if len(results) > 1:
            spread = max(r["explained_variance"] for r in results) - min(r["explained_variance"] for r in results)
            score += f" ± {spread / 2:.4f}"
        rivals = [f"{_rival(results, name):.4f}" for name in _RIVALS]
        rest = [f"{100 * _mean(results, 'dead'):.1f}", f"{max(r['worst_patch'] for r in results):.2f}"]
        rest += [str(results[0]["cell"]["steps"]), str(len(results)), f"{_mean(results, 'seconds'):.0f}"]
        lines.append([_LABELS[method], f"{count:g}", f"{_mean(results, 'active'):.2f}", score, *rivals, *rest])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _sweep(results: Results) -> str:
    lines = [["asked %", "measured %", "off by", "EV", "dead %"], ["---:"] * 5]
    for result in sorted(results, key=lambda r: r["cell"]["active"]):
        share = 100 / result["cell"]["components"]
        asked, measured = share * result["cell"]["active"], share * result["active"]
        line = [f"{asked:.3g}", f"{measured:.3f}", f"{100 * (measured / asked - 1):+.1f} %"]
        lines.append([*line, f"{result['explained_variance']:.4f}", f"{100 * result['dead']:.1f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(best: dict[tuple[str, float], Results], title: str, path: Path) -> Path:
    """Explained variance over mean active count; the solvers on our dictionary, dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for method, label in _LABELS.items():
        points = sorted((_mean(r, "active"), _mean(r, "explained_variance")) for k, r in best.items() if k[0] == method)
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=_COLOURS[method], label=label, zorder=3)
    for style, (name, label) in zip(("--", ":", "-.", (0, (1, 3))), _RIVALS.items(), strict=True):
        points = sorted((_mean(r, "active"), _rival(r, name)) for k, r in best.items() if k[0] == OURS)
        if points:
            axes.plot(*zip(*points, strict=True), linestyle=style, color="0.35", label=f"{label} (softspike's atoms)")
    axes.set(xscale="log", xlabel="mean active components", ylabel="explained variance, unseen patches", title=title)
    ticks = sorted({key[1] for key in best})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=140)
    return path
