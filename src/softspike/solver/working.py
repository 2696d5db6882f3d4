"""The lasso on working sets: each sample descends over the few atoms that can matter to it."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from softspike.solver.gap import gap_of_slope
from softspike.solver.proximal import Point, descend, proximal
from softspike.solver.signals import Answer, Atoms, Signals

__all__ = ["working_set"]

_NEW, _STEPS = 16, 12  # atoms that may join in a round, and steps in it
_WIDEST = 1 / 16  # of the numbers in the dictionary: with more in a working set's Gram matrix, all atoms cost less
_NUMBERS = 2**18  # entries of Gram matrices held at a time: a megabyte, so that they stay in the cache


class Working(NamedTuple):
    """The atoms that B samples work with, at most m each."""

    atoms: Tensor  # (B, m) indices, d where there is none
    codes: Tensor  # (B, m)
    curvature: Tensor  # (B, 1)

    def at(self, rows: Tensor) -> "Working":
        return Working(*(values.index_select(0, rows) for values in self))

    def spread(self, like: Tensor) -> Tensor:
        """The codes over all atoms. Padding adds zeros to a column of its own."""
        return torch.zeros_like(like).scatter_(1, self.atoms, self.codes)


def working_set(
    signals: Signals, atoms: Atoms, answer: Answer, *, max_steps: int, start: Tensor | None, positive: bool
) -> None:
    """Rounds of: look at all atoms, let the worst violators of |aᵢᵀr| ≤ λ join, descend over the working set.

    The gap is taken over all atoms, so a sample that leaves is solved on the whole dictionary.
    """
    work, slope = _begin(signals, atoms, start)
    for done in range(0, max_steps + 1, _STEPS):
        size = slope if positive else slope.abs()
        known = signals.correlation.gather(1, work.atoms)
        gap = gap_of_slope(signals.energy, known, work.codes, slope.gather(1, work.atoms), size.amax(-1, keepdim=True))
        reached = (gap <= signals.floor) & (start is None or done > 0)  # the codes of a neighbouring λ are near, too
        reached |= done + _STEPS > max_steps
        finished, going = (mask[:, 0].nonzero()[:, 0] for mask in (reached, ~reached))
        if len(finished):
            leaving = work.at(finished)
            answer.store(signals.at(finished), leaving.spread(size[: len(finished)]), gap[finished], done)
            signals, work, size, known = (
                signals.at(going), work.at(going), size.index_select(0, going), known.index_select(0, going)
            )  # fmt: skip
        if not len(going):
            return None
        if work.atoms.shape[1] ** 2 > _WIDEST * atoms.columns.numel():
            whole = work.spread(size)[:, : atoms.n]
            return proximal(signals, atoms, answer, max_steps=max_steps, start=whole, positive=positive, begun=done)
        work = _join(work, size, atoms.n)
        known = torch.cat([known, signals.correlation.gather(1, work.atoms[:, known.shape[1] :])], dim=1)
        work = _round(work, known, atoms, positive)
        slope = _slope(signals, atoms, work)


def _begin(signals: Signals, atoms: Atoms, start: Tensor | None) -> tuple[Working, Tensor]:
    n, places = len(signals.x), signals.places
    curvature = atoms.typical.expand(n, 1)
    if start is None:
        return Working(places.new_empty(n, 0), signals.x.new_empty(n, 0), curvature), signals.correlation
    most = int((start != 0).sum(-1).max())
    chosen = start.abs().topk(most, dim=-1).indices
    codes = start.gather(1, chosen)
    work = Working(torch.where(codes != 0, chosen, atoms.n), codes, curvature)
    return work, _slope(signals, atoms, work)


def _join(work: Working, size: Tensor, none: int) -> Working:
    """The largest sizes above λ = 1 among atoms that are not at work yet, at most _NEW of them."""
    values, atoms = size.scatter(1, work.atoms, 0.0).topk(min(_NEW, size.shape[1]), dim=-1)
    violating = values > 1
    most = int(violating.sum(-1).max())
    joining = torch.where(violating, atoms, none)[:, :most]
    codes = torch.cat([work.codes, work.codes.new_zeros(len(joining), most)], dim=1)
    return Working(torch.cat([work.atoms, joining], dim=1), codes, work.curvature)


def _round(work: Working, known: Tensor, atoms: Atoms, positive: bool) -> Working:
    codes, curvatures = [], []
    for part, start in _pieces(work, known):
        gram = _gram(part.atoms, atoms)

        def bend(move: Tensor, gram: Tensor = gram) -> Tensor:
            return torch.bmm(move[:, None], gram)[:, 0]

        point = Point(part.codes, start - bend(part.codes), part.curvature)
        point = descend(point, bend, _STEPS, atoms.least, positive)
        codes.append(point.codes)
        curvatures.append(point.curvature)
    return Working(work.atoms, torch.cat(codes), torch.cat(curvatures))


def _pieces(work: Working, known: Tensor) -> Iterator[tuple[Working, Tensor]]:
    size = max(_NUMBERS // max(work.atoms.shape[1], 1) ** 2, 8)
    for *part, start in zip(*(values.split(size) for values in (*work, known)), strict=True):
        yield Working(*part), start


def _gram(chosen: Tensor, atoms: Atoms) -> Tensor:
    """aᵢᵀaⱼ of the atoms at work, (B, m, m)."""
    n, m = chosen.shape
    if atoms.gram is None:
        picked = atoms.rows[chosen]
        return torch.bmm(picked, picked.mT)
    pairs = chosen[:, :, None] * len(atoms.gram) + chosen[:, None, :]
    return atoms.gram.view(-1).index_select(0, pairs.view(-1)).view(n, m, m)


def _slope(signals: Signals, atoms: Atoms, work: Working) -> Tensor:
    """Aᵀ(x − Az). A weighted sum of a few rows is what embedding_bag computes without copying them."""
    if not work.atoms.shape[1]:  # all codes are zero, and it knows no empty bags of one length
        return signals.correlation
    table = atoms.rows if atoms.gram is None else atoms.gram
    image = embedding_bag(work.atoms, table, per_sample_weights=work.codes, mode="sum")
    return (signals.x - image) @ atoms.columns if atoms.gram is None else signals.correlation - image
