"""Which departure of the published scripts from the paper's text moves the loss, in sentences that follow from it."""

from collections.abc import Mapping, Sequence
from statistics import mean

from softspike.reproduce.cell import SINGLE_SWITCHES, VARIANTS
from softspike.reproduce.rows import Measured, longest, short

__all__ = ["switch_findings"]

_SCRIPTS, _EQUATIONS = VARIANTS.values()


def switch_findings(rows: Sequence[Measured]) -> list[str]:
    """Per method and J of which a single switch was tried: what each does to the scripts' loss, the largest first.

    Seeds are compared with themselves: of some methods they differ by more than a switch does.
    """
    known = [row for row in longest(rows) if row.cell.method.departs]
    said = []
    for place in dict.fromkeys(row.cell.row for row in known if row.cell.variant.name in SINGLE_SWITCHES):
        own = {row.cell.variant.name: row for row in known if row.cell.row == place}
        losses = {name: row.by_seed("loss.total") for name, row in own.items()}
        seeds = set.intersection(*(set(of) for of in losses.values()))
        if _SCRIPTS.name in own and seeds:
            said.append(_sentence(own, {name: mean(of[seed] for seed in seeds) for name, of in losses.items()}, seeds))
    return said


def _sentence(rows: Mapping[str, Measured], losses: Mapping[str, float], seeds: set[int]) -> str:
    moves = {name: loss - losses[_SCRIPTS.name] for name, loss in losses.items()}
    single = sorted((name for name in moves if name in SINGLE_SWITCHES), key=lambda name: -abs(moves[name]))
    each = ", ".join(f"{moves[name]:+.1f} ({_what(rows[name])})" for name in single)
    every = f"; all of the paper's text together {moves[_EQUATIONS.name]:+.1f}" if _EQUATIONS.name in moves else ""
    cell, which = rows[_SCRIPTS.name].cell, f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, sorted(seeds)))}"
    scripts = f"the scripts' loss of {short(losses[_SCRIPTS.name], 4)} ({which})"
    return f"{cell.method.title}, J = {cell.n_samples}: one switch alone moves {scripts} by {each}{every}."


def _what(row: Measured) -> str:
    return row.cell.variant.title.removeprefix(f"{_SCRIPTS.title}, but ")
