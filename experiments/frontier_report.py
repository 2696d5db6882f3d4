"""Finished cells → a Markdown table and a figure for each data set and dictionary size, and the sparsity sweep."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from statistics import mean
from typing import Any

from experiments.frontier_cell import OURS

__all__ = ["write_report"]

Results = list[dict[str, Any]]
Setting = tuple[str, float, tuple]
_LABELS = {OURS: "softspike", "batchtopk": "BatchTopK", "jumprelu": "JumpReLU", "topk": "TopK"}
_RIVALS = {
    "omp_tolerance": "OMP, one tolerance", "omp_gain": "OMP, one gain", "omp_fixed": "OMP, fixed count",
    "fista": "FISTA", "fista_refit": "FISTA, refitted",
}  # fmt: skip
_COLOURS = {OURS: "#0b5fa5", "batchtopk": "#d1702a", "jumprelu": "#3d8f5f", "topk": "#9a57a3"}


_NOTE = """\
# The frontier, cell by cell

Explained variance (EV) of deterministic codes on unseen patches, and of solvers on the *same row's* dictionary at the
same mean count. Solvers ran on the first patches only (their number is in frontier.json); their EV is shifted by what
the row's own code scores on all patches and on those. OMP stops at one tolerance of ‖r‖² for all patches, at one gain
of the next atom, or at one count. "trained" is steps × batch; "depth" unrolled steps + rounds of correction; "rate" a
learning rate tried besides the method's own; the figures show the row that explains most of these very
patches. "uncorrected" is the code before its support is corrected. "worst" is the largest ‖x − x̂‖²/‖x‖² of a patch,
"dead" the share of components never active on the whole training set, "±" half the range over seeds."""


def write_report(folder: Path) -> list[Path]:
    """frontier.json with all finished cells, frontier.md with tables, and one PNG for each frontier."""
    results = _load(folder)
    groups: dict[tuple[str, int], Results] = defaultdict(list)
    for result in results:
        if result["rivals"] or result["cell"]["method"] != OURS:
            groups[result["cell"]["data"], result["cell"]["components"]].append(result)
    parts, written = [_NOTE], []
    for (data, components), group in sorted(groups.items()):
        settings = _settings(group)
        parts.append(f"## {data}, d = {components}\n\n{_table(settings)}")
        written.append(_figure(settings, f"{data}, d = {components}", folder / f"frontier-{data}-{components}.png"))
    ours = [r for r in results if not r["rivals"] and r["cell"]["method"] == OURS]
    sweep = [r for r in ours if not r["cell"].get("positive")]
    if sweep:
        parts.append(f"## Asked and measured sparsity\n\n{_sweep(sweep)}")
    text = folder / "frontier.md"
    text.write_text("\n\n".join(parts) + "\n")
    return [text, *written]


def _load(folder: Path) -> Results:
    """The cells finished here, and those of an earlier frontier.json; all are in frontier.json afterwards."""
    merged = folder / "frontier.json"
    found = json.loads(merged.read_text()) if merged.exists() else {}
    found |= {path.stem: json.loads(path.read_text()) for path in (folder / "cells").glob("*.json")}
    lines = (f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    merged.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return [found[name] for name in sorted(found)]


def _settings(group: Results) -> dict[Setting, Results]:
    """(method, count, rate, …) → its seeds."""
    found: dict[Setting, Results] = defaultdict(list)
    for result in group:
        cell = result["cell"]
        rest = (cell["learning_rate"], cell["steps"], cell["batch"], cell["encoder_steps"], cell.get("rounds"))
        rest += (cell.get("asked", 1.0), cell.get("refits"), cell["n_train"])
        method = cell["method"] + (", positive" if cell.get("positive") else "")
        found[method, cell["active"], rest].append(result)
    return dict(found)


def _best(settings: dict[Setting, Results], method: str) -> Iterable[Results]:
    """For each count, the setting of a method that explains most."""
    counts = sorted({count for name, count, _ in settings if name == method})
    for count in counts:
        tried = [results for key, results in settings.items() if key[:2] == (method, count)]
        yield max(tried, key=lambda results: _mean(results, "explained_variance"))


def _mean(results: Iterable[Mapping[str, Any]], name: str) -> float:
    return mean(float(result[name]) for result in results)


def _rival(results: Results, name: str) -> float:
    """Moved by what the code itself scores on all patches and on the solvers': as if solved on all. NaN if unsolved."""
    solved = [r for r in results if name in r["rivals"]]
    gaps = [r["rivals"][name] - r["rivals"]["own"] + r["explained_variance"] for r in solved]
    return mean(gaps) if gaps else float("nan")


def _table(settings: dict[Setting, Results]) -> str:
    head = ["method", "trained", "depth", "rate", "asked", "active", "EV", "EV, uncorrected", *_RIVALS.values()]
    head += ["dead %", "worst", "seeds"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    order = {method: number for number, method in enumerate(_LABELS)}
    for key in sorted(settings, key=lambda k: (order.get(k[0], len(order)), k[0], k[2][1:4], k[2][0] or 0, k[1])):
        lines.append(_row(key, settings[key]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(key: Setting, results: Results) -> list[str]:
    method, count, rest = key
    scores = [r["explained_variance"] for r in results]
    spread = f" ± {(max(scores) - min(scores)) / 2:.4f}" if len(scores) > 1 else ""
    plain, depth = mean(_uncorrected(r) for r in results), f"{rest[3]} + {rest[4]}" if method == OURS else "–"
    return [
        _LABELS.get(method, method), f"{rest[1]}×{rest[2]}", depth, f"{rest[0] or 'own'}", f"{count:g}",
        f"{_mean(results, 'active'):.2f}", _number(mean(scores)) + spread, _number(plain),
        *(_number(_rival(results, name)) for name in _RIVALS),
        f"{100 * _mean(results, 'dead'):.1f}", f"{max(r['worst_patch'] for r in results):.2f}", str(len(results)),
    ]  # fmt: skip


def _uncorrected(result: Mapping[str, Any]) -> float:
    """Of the first support with three refit steps, for a model that corrects it."""
    found = result.get("uncorrected")
    return float("nan") if found is None else found


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.4f}"


def _sweep(results: Results) -> str:
    lines = [["data", "asked %", "measured %", "off by", "Σγ, %", "EV", "dead %"], ["---"] + ["---:"] * 6]
    for result in sorted(results, key=lambda r: (r["cell"]["data"], r["cell"]["active"])):
        share = 100 / result["cell"]["components"]
        asked, measured = share * result["cell"]["active"], share * result["active"]
        line = [result["cell"]["data"], f"{asked:.3g}", f"{measured:.3f}", f"{100 * (measured / asked - 1):+.1f} %"]
        line.append("–" if result.get("expected") is None else f"{share * result['expected']:.3f}")
        lines.append([*line, f"{result['explained_variance']:.4f}", f"{100 * result['dead']:.1f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(settings: dict[Setting, Results], title: str, path: Path) -> Path:
    """Explained variance over mean active count; the solvers on our dictionary, dashed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for method, label in _LABELS.items():
        points = [(_mean(r, "active"), _mean(r, "explained_variance")) for r in _best(settings, method)]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=_COLOURS[method], label=label, zorder=3)
    for style, (name, label) in zip(("--", (0, (5, 1)), ":", "-.", (0, (1, 3))), _RIVALS.items(), strict=True):
        points = [(_mean(r, "active"), _rival(r, name)) for r in _best(settings, OURS)]
        if points:
            axes.plot(*zip(*points, strict=True), linestyle=style, color="0.35", label=f"{label} (softspike's atoms)")
    axes.set(xscale="log", xlabel="mean active components", ylabel="explained variance, unseen patches", title=title)
    ticks = sorted({key[1] for key in settings})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=140)
    return path
