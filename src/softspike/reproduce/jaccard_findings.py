"""What the sampling study says: consistency beyond chance, arm by arm, and where the loss is not the paper's."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from softspike.methods.published import Study
from softspike.reproduce.cell import BEST, MEAN, SAMPLINGS
from softspike.reproduce.paper import SAMPLING_LOSS
from softspike.reproduce.rows import Measured, off_by, short

__all__ = ["Excess", "excess", "jaccard_findings"]

_LOSS_TOLERANCE = 0.03
_NEAR = 0.01  # of what chance gives: less than this above it is at chance, however sure


class Excess(NamedTuple):
    """By how much draws for one input share more components than draws for different inputs."""

    value: float  # Jaccard index less the index between inputs
    error: float  # standard error over patches
    chance: float  # the index between inputs

    @property
    def at_chance(self) -> bool:
        """Within two standard errors of chance, or within 1 % of it."""
        return abs(self.value) <= max(2 * self.error, _NEAR * self.chance)

    def __str__(self) -> str:
        share = self.value / self.chance
        where = (
            "at chance" if self.at_chance else f"{100 * abs(share):.1f} % {'above' if share > 0 else 'below'} chance"
        )
        return f"{short(self.value, 2)} ({where})"


def excess(row: Measured) -> Excess | None:
    """The error is that of a mean over patches, from their histogram; both indices are taken to spread alike."""
    index, chance = row.mean("jaccard.index"), row.mean("jaccard.between_inputs")
    if index is None or chance is None:
        return None
    counts = [record["figures"]["jaccard"]["histogram"] for record in row.good]
    variance = sum(_variance(np.asarray(c)) / max(sum(c), 1) for c in counts) / len(counts) ** 2
    return Excess(index - chance, math.sqrt(2 * variance), chance)


def _variance(counts: np.ndarray) -> float:
    """Of a histogram over [0, 1]."""
    middles = (np.arange(len(counts)) + 0.5) / len(counts)
    share = counts / max(counts.sum(), 1)
    return float(share @ middles**2 - (share @ middles) ** 2)


def jaccard_findings(rows: Sequence[Measured]) -> list[str]:
    """For each length, convention and J the arms in order; then the losses that are not the paper's."""
    groups: dict[tuple[int, str, int], dict[str, Measured]] = {}
    for row in rows:
        groups.setdefault((row.steps, row.whose, row.cell.n_samples), {})[row.cell.sampling.name] = row
    lengths_first = sorted(groups.items(), key=lambda group: -group[0][0])
    consistency = [_consistency(*key, arms) for key, arms in lengths_first if any(map(excess, arms.values()))]
    return [*consistency, *_losses(rows)]


def _consistency(steps: int, conventions: str, n_samples: int, arms: dict[str, Measured]) -> str:
    known = {name: found for name, row in arms.items() if (found := excess(row)) is not None}
    order = sorted(known, key=lambda name: -known[name].value)
    listed = [f"{SAMPLINGS[name].title} {known[name]}" for name in order]
    missing = [sampling.title for name, sampling in SAMPLINGS.items() if name not in known]
    fewest = min(len(row.good) for name, row in arms.items() if name in known)
    where = f"J = {n_samples}, {steps:,} steps ({conventions}, {fewest} seed{'' if fewest == 1 else 's'})"
    parts = [f"{where}: Jaccard index less the index between inputs: {', '.join(listed)}"]
    if {BEST.name, MEAN.name} <= known.keys():
        parts.append(_claim(known[BEST.name], known[MEAN.name], steps < Study().n_steps))
    if missing:
        parts.append(f"not trained for as long: {' and '.join(missing)}")
    return f"{'; '.join(parts)}."


def _claim(best: Excess, average: Excess, short_run: bool) -> str:
    """The paper's: max-ELBO training gives more consistent supports than average training."""
    gap, error = best.value - average.value, math.hypot(best.error, average.error)
    if short_run:
        said = "no verdict on the paper's claim after a shorter schedule"
        return f"max-ELBO less average training {short(gap, 2)}: {said}"
    if abs(gap) <= 2 * error or (best.at_chance and average.at_chance):
        return "max-ELBO and average training differ by no more than chance: not the paper's claim"
    if gap < 0:
        return "max-ELBO training is less consistent than average training: not the paper's claim"
    return f"max-ELBO training is more consistent than average training, as the paper claims, by {short(gap, 2)}"


def _losses(rows: Sequence[Measured]) -> Iterable[str]:
    """Arms whose loss is off the paper's, beside those of the same length whose loss is not."""
    for steps, conventions in dict.fromkeys((row.steps, row.whose) for row in rows):
        arms: dict[str, list[tuple[float, str]]] = {}
        for row in rows:
            theirs, ours = SAMPLING_LOSS.get((row.cell.sampling.name, row.cell.n_samples)), row.mean("loss.total")
            if (row.steps, row.whose) == (steps, conventions) and theirs and ours is not None:
                said = f"{off_by(ours, theirs)} at J = {row.cell.n_samples}"
                arms.setdefault(row.cell.sampling.title, []).append((abs(ours / theirs - 1), said))
        off = {title: found for title, found in arms.items() if max(found)[0] > _LOSS_TOLERANCE}
        if off:
            near = [title for title in arms if title not in off]
            why = "the schedule is shorter than the paper's" if steps < Study().n_steps else "not explained"
            yield (
                f"After {steps:,} steps ({conventions}) the loss is off the paper's for {_listed(arms, off)}"
                + (f", while it is within {100 * _LOSS_TOLERANCE:g} % for {_listed(arms, near)}" if near else "")
                + f": {why}."
            )


def _listed(arms: dict[str, list[tuple[float, str]]], titles: Iterable[str]) -> str:
    return " and ".join(f"{title} training ({', '.join(said for _, said in arms[title])})" for title in titles)
