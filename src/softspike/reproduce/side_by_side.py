"""Table 1 in brief: the paper's figures, ours under the published scripts' conventions, ours under its equations."""

from collections.abc import Sequence

from softspike.report.grid import Grid
from softspike.reproduce.cell import FISTA, VARIANTS
from softspike.reproduce.paper import TABLE1
from softspike.reproduce.rows import LENGTH, Measured, length, off_by, short
from softspike.reproduce.setting import Setting

__all__ = ["side_by_side"]

_OURS = [column for name in VARIANTS for column in (name, "off by")]
_COLUMNS = ["method", "J", *LENGTH, "loss: paper", *_OURS, "MI, bits: paper", *_OURS]
_NOTE = """\
Where the scripts and the paper's text do not differ (FISTA, Gaussian), both columns show the same runs."""


def side_by_side(rows: Sequence[Measured], setting: Setting) -> Grid | None:
    """One line per method, J and number of steps that were run under both conventions; None where there is none."""
    found: dict[tuple[object, int], dict[str, Measured]] = {}
    for row in rows:
        found.setdefault((row.cell.row, row.steps), {})[row.cell.variant.name] = row
    pairs = [[own[name] for name in VARIANTS] for own in found.values() if own.keys() >= VARIANTS.keys()]
    if not any(pair[0].cell.method.departs for pair in pairs):
        return None
    return Grid("Side by side", _COLUMNS, [_line(pair, setting) for pair in pairs], [_NOTE])


def _line(pair: Sequence[Measured], setting: Setting) -> list[str]:
    cell, paper = pair[0].cell, TABLE1.get(pair[0].cell.row)
    steps, seeds = (" / ".join(dict.fromkeys(values)) for values in zip(*map(length, pair), strict=True))
    line = [cell.method.title, "–" if cell.method is FISTA else str(cell.n_samples), steps, seeds]
    for path, name in (("loss.total", "loss"), ("multi_information.published", "multi_information")):
        theirs = None if paper is None else getattr(paper, name)
        line.append(short(theirs, 3))
        for row in pair:
            line += [row.text(path, 4), off_by(row.mean(path), theirs) if setting.paper_like else "–"]
    return line
