"""What became of the paper's claim about the subgradient: divergence and either collapse, each judged by itself."""

from collections.abc import Sequence

from softspike.reproduce.paper import COLLAPSE, Collapse
from softspike.reproduce.rows import Measured

__all__ = ["is_subgradient", "percent", "table2_findings"]

_CLOSE, _ENTIRE = 0.05, 0.99  # shares that count as the same; the share that counts as all


def is_subgradient(row: Measured) -> bool:
    return row.cell.variant.name.endswith("subgradient")


def percent(share: float | None) -> str:
    return "NaN" if share is None else f"{100 * share:.2f} %"


def table2_findings(rows: Sequence[Measured]) -> list[str]:
    """The paper's claim: the subgradient diverges (J = 1) or collapses entirely (J = 20); straight-through does not."""
    judged = [
        (row, partner, COLLAPSE["subgradient", row.cell.n_samples])
        for row in rows
        if is_subgradient(row)
        and (partner := _partner(row, rows)) is not None
        and ("subgradient", row.cell.n_samples) in COLLAPSE
    ]
    said = [_row_finding(*case) for case in judged]
    return [*said, _overall(judged)] if judged else []


def _partner(row: Measured, rows: Sequence[Measured]) -> Measured | None:
    """The straight-through row of the same conventions, J and length."""
    wanted = (row.whose, row.cell.n_samples, row.steps)
    return next((r for r in rows if (r.cell.variant.name, r.cell.n_samples, r.steps) == wanted), None)


def _row_finding(row: Measured, partner: Measured, paper: Collapse) -> str:
    theirs = "all" if paper.posterior is None else "none"
    agrees = "" if _diverges_as(row, paper) else "not "
    parts = [f"{row.diverged} of {len(row.records)} runs diverge (paper: {theirs}), {agrees}as published"]
    for kind in ("posterior", "feature"):
        ours, usual = row.mean(f"collapse.{kind}"), partner.mean(f"collapse.{kind}")
        published = getattr(paper, kind)
        verdict = "no figure to compare with"
        if published is not None:
            verdict = f"{'' if _close(ours, published) else 'not '}as published"
        against = f"straight-through {percent(usual)}, paper {percent(published)}"
        parts.append(f"{kind} collapse {percent(ours)} ({against}), {verdict}")
    return f"Subgradient ({row.whose}), J = {row.cell.n_samples}: {'; '.join(parts)}.{_loss(row, partner)}"


def _loss(row: Measured, partner: Measured) -> str:
    """Where the published loss likes the collapse."""
    ours, usual = row.mean("loss.total"), partner.mean("loss.total")
    if ours is None or usual is None or ours >= usual:
        return ""
    explained = [r.mean("best_sample.explained_variance") for r in (row, partner)]
    return (
        f" Its published loss is lower than straight-through's ({ours:.1f} against {usual:.1f}), although its best "
        f"sample explains {percent(explained[0])} of the variance against {percent(explained[1])}."
    )


def _overall(judged: Sequence[tuple[Measured, Measured, Collapse]]) -> str:
    failing = [_failure(row, partner) for row, partner, _ in judged]
    missing = [name for row, _, paper in judged for name in _missing(row, paper)]
    if not any(failing):
        verdict = "does not hold"
    elif all(failing) and not missing:
        verdict = "holds"
    else:
        verdict = "holds in part"
    seen = [
        f"J = {row.cell.n_samples} ({row.whose}): {how or 'it does not fail'}"
        for (row, *_), how in zip(judged, failing, strict=True)
    ]
    lacking = f"; not found as published: {', '.join(missing)}" if missing else ""
    claim = "the subgradient fails where straight-through does not"
    return f"Overall, the paper's claim ({claim}) {verdict}: {'; '.join(seen)}{lacking}."


def _failure(row: Measured, partner: Measured) -> str:
    """In what way, or nothing."""
    ways = ["it diverges" if row.diverged == len(row.records) else "it diverges at times"] if row.diverged else []
    for kind in ("posterior", "feature"):
        ours, usual = row.mean(f"collapse.{kind}"), partner.mean(f"collapse.{kind}") or 0.0
        if ours is not None and ours > usual + _CLOSE:
            how = "entire" if ours > _ENTIRE else f"{percent(ours)} against {percent(usual)}"
            ways.append(f"{kind} collapse ({how})")
    return ", ".join(ways)


def _missing(row: Measured, paper: Collapse) -> list[str]:
    at = f"at J = {row.cell.n_samples}"
    found = [] if _diverges_as(row, paper) else [f"{'divergence' if paper.posterior is None else 'no divergence'} {at}"]
    for kind in ("posterior", "feature"):
        theirs = getattr(paper, kind)
        if theirs is not None and not _close(row.mean(f"collapse.{kind}"), theirs):
            found.append(f"{kind} collapse of {percent(theirs)} {at}")
    return found


def _diverges_as(row: Measured, paper: Collapse) -> bool:
    return row.diverged == (len(row.records) if paper.posterior is None else 0)


def _close(ours: float | None, theirs: float) -> bool:
    return ours is not None and abs(ours - theirs) <= _CLOSE
