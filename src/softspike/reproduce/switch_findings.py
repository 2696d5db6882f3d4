"""Which departure of the published scripts from the paper's text moves the loss, in sentences that follow from it."""

from collections.abc import Sequence

from softspike.reproduce.cell import SINGLE_SWITCHES, VARIANTS
from softspike.reproduce.rows import Measured, longest

__all__ = ["switch_findings"]

_SCRIPTS, _EQUATIONS = VARIANTS.values()


def switch_findings(rows: Sequence[Measured]) -> list[str]:
    """Per method and J of which a single switch was tried: what each does to the scripts' loss, the largest first."""
    known = [row for row in longest(rows) if row.mean("loss.total") is not None and row.cell.method.departs]
    said = []
    for place in dict.fromkeys(row.cell.row for row in known if row.cell.variant.name in SINGLE_SWITCHES):
        own = {row.cell.variant.name: row for row in known if row.cell.row == place}
        if _SCRIPTS.name in own:
            said.append(_sentence(own.pop(_SCRIPTS.name), own))
    return said


def _sentence(scripts: Measured, others: dict[str, Measured]) -> str:
    moves = {name: _loss(row) - _loss(scripts) for name, row in others.items()}
    single = sorted((name for name in moves if name in SINGLE_SWITCHES), key=lambda name: -abs(moves[name]))
    each = ", ".join(f"{moves[name]:+.1f} ({_what(others[name])})" for name in single)
    every = f"; all of the paper's text together {moves[_EQUATIONS.name]:+.1f}" if _EQUATIONS.name in moves else ""
    name = f"{scripts.cell.method.title}, J = {scripts.cell.n_samples}"
    return f"{name}: one switch alone moves the scripts' loss of {scripts.text('loss.total', 4)} by {each}{every}."


def _loss(row: Measured) -> float:
    return row.mean("loss.total") or 0.0


def _what(row: Measured) -> str:
    return row.cell.variant.title.removeprefix(f"{_SCRIPTS.title}, but ")
