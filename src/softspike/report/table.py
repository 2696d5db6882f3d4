"""Readable tables on a terminal, plain `name: value` lines elsewhere."""

import sys
from collections.abc import Iterable, Sequence

from softspike.metric import Baselines, Summary
from softspike.metric.sampled import Sampled
from softspike.visible import visible

__all__ = ["Line", "print_grid", "print_table", "sampled_lines", "summary_lines"]

Line = tuple[str, str, str]  # what, value, what to compare it with


def print_table(title: str, lines: Iterable[Line]) -> None:
    """Standard output only: a framed table for people, tab-free lines for programs."""
    title, shown = visible(title), [tuple(map(visible, line)) for line in lines]
    if not sys.stdout.isatty():
        print(title)
        for name, value, note in shown:
            print(f"  {name}: {value}" + (f"  ({note})" if note else ""))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for line in shown:
        table.add_row(*map(Text, line))  # as text: a folder's name may look like markup
    Console().print(table)


def summary_lines(summary: Summary, target: float | None, rivals: Baselines | None) -> list[Line]:
    """The figures of a summary, each with what it should be judged against."""
    asked = f"asked for {target:.1f} on unseen rows" if target is not None else ""
    lines = [
        ("explained variance", f"{summary.explained_variance:.3f}", "0 is the mean, 1 is everything"),
        ("active components", f"{summary.active:.2f} of {summary.n_components}", asked),
        ("dead components", str(summary.dead), f"never active on {summary.n_samples} samples"),
    ]
    if rivals is None or rivals.omp is not None or summary.error is None:
        note = f"the paper's ½‖x − Az‖² + 20‖z‖₁, not what is trained; z = 0 has {summary.loss_of_zero:.1f}"
        lines.append(("sparse-coding loss", f"{summary.loss:.1f}", note))
    else:
        lines.append(("mean squared error", f"{summary.error:.5f}", "per pixel"))
    if rivals:
        note = f"same mean count, {rivals.n_samples} samples"
        if rivals.omp is not None:
            own = "" if rivals.own is None else f", where this coder has {rivals.own:.3f}"
            lines.append(("baseline: OMP, same dictionary", f"{rivals.omp:.3f}", note + own))
        lines.append(
            ("baseline: principal components", f"{rivals.pca:.3f}", f"{note}, and of these samples themselves")
        )
    return lines


def print_grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Several things with the same figures, a row each: a table for people, aligned columns for programs."""
    rows = [list(map(visible, row)) for row in rows]
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns)
    for row in rows:
        table.add_row(*map(Text, row))  # as text: a folder's name may look like markup
    Console().print(table)


def sampled_lines(sampled: Sampled) -> list[Line]:
    """What draws from the posterior reach."""
    return [
        (f"error of the best of {sampled.n_samples} draws", f"{sampled.best:.5f}", f"{sampled.active:.1f} active"),
        ("error of one draw", f"{sampled.one:.5f}", "mean squared, per pixel"),
    ]
