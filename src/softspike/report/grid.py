"""Tables of many columns: Markdown for a file, a framed table on a terminal, aligned text elsewhere."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Grid", "markdown", "print_grid"]


@dataclass(frozen=True)
class Grid:
    """The first column names the row; the others hold numbers, already written out. Empty notes are left out."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default_factory=list)


def markdown(grid: Grid) -> str:
    """A heading-less Markdown table with its notes below."""
    lines = [f"**{grid.title}**", ""]
    lines += [_line(grid.columns), _line(["---"] + ["---:"] * (len(grid.columns) - 1)), *map(_line, grid.rows)]
    lines += [part for note in grid.notes if note for part in ("", note)]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def print_grid(grid: Grid) -> None:
    """To standard output."""
    if sys.stdout.isatty():
        _print_framed(grid)
        return
    widths = [max(map(len, column)) for column in zip(grid.columns, *grid.rows, strict=True)]
    print(f"\n{grid.title}")
    for row in (grid.columns, *grid.rows):
        others = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        print("  ".join([row[0].ljust(widths[0]), *others]).rstrip())
    for note in filter(None, grid.notes):
        print(note)


def _print_framed(grid: Grid) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=grid.title, title_justify="left")
    for number, column in enumerate(grid.columns):
        table.add_column(column, justify="right" if number else "left", style="bold" if number == 0 else "")
    for row in grid.rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    for note in filter(None, grid.notes):
        console.print(note, style="dim", highlight=False, markup=False)
