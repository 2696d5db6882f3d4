"""What a reader of Table 1 must know, said under its tables; what depends on the figures is taken from them."""

import math
from collections.abc import Sequence

from softspike.reproduce.cell import FISTA
from softspike.reproduce.rows import Measured, figure_at, short
from softspike.reproduce.setting import Setting

__all__ = ["PUBLISHED_NOTE", "right_notes"]

_DRIFT = 0.01  # of the count asked for, beyond which FISTA's own is named

_RIGHT_NOTE = """\
First the explained variance of validation patches, with the mean number of active components in brackets; OMP (one
global tolerance) and FISTA run on the same dictionary at the count of the best sample. The bound is the importance-
weighted one with K = 200 and the true mixed densities, in nats per patch{variance}. Total correlation is that of a
Gaussian with the same correlations; corrected MI is the published estimator less its value on column-permuted codes:
near 0 where the estimator has no power left. The Jaccard index compares the supports of 20 draws for one input, over
components with ‖a‖² > 0.1; between inputs, those of draws for different inputs."""
PUBLISHED_NOTE = """\
The loss is ½‖x−Az‖² + 20‖z‖₁ + 1e-3·‖A‖²; z = 0 is what coding nothing scores without the last term. Multi-information
(MI) is Σ H(zᵢ) − H(z) of binned codes; prior alone is the same for draws from the prior, which have seen no data. The
paper's IWAE column is no bound, and stands here for reference only."""


def right_notes(rows: Sequence[Measured], setting: Setting) -> list[str]:
    notes = [_RIGHT_NOTE.format(variance=_variance(setting)), _silent(rows, setting), _solved(rows)]
    return [*notes, _drifted(rows), _dense(rows)]


def _variance(setting: Setting) -> str:
    study = setting.study
    variance = f"v = βD/2 = {study.noise_variance:g}"
    return f",\nwith the noise variance {variance} that β = {study.beta:g} and D = {study.n_features} imply"


def _silent(rows: Sequence[Measured], setting: Setting) -> str:
    """log N(x; 0, v) on average: −½‖x‖²/v − ½D·log 2πv."""
    found = next((loss for row in rows if (loss := row.mean("loss.zero")) is not None), None)
    if found is None:
        return ""
    v, n_features = setting.study.noise_variance, setting.study.n_features
    bound = -found / v - n_features / 2 * math.log(2 * math.pi * v)
    return f"A model that codes nothing has a bound of {short(bound, 4)}: z = 0 for certain, by posterior and prior."


def _solved(rows: Sequence[Measured]) -> str:
    counts = sorted({int(n) for row in rows for n in row.values("matched.n_samples")})
    if not counts:
        return ""
    n = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    own = next((row for row in rows if row.cell.method is FISTA and row.values("matched.fista")), None)
    if own is None:
        return f"OMP and FISTA code the first {n} validation patches."
    whole, part = own.mean("best_sample.explained_variance"), own.mean("matched.fista")
    return (
        f"OMP and FISTA code the first {n} validation patches, the other columns are of all: FISTA with its own "
        f"dictionary explains {short(whole)} of all of them and {short(part)} of these."
    )


def _drifted(rows: Sequence[Measured]) -> str:
    """The rows in which FISTA's count is not quite the one that it was to meet."""
    said = []
    for row in rows:
        ours, asked = row.mean("matched.fista_active"), row.mean("best_sample.active")
        if ours is not None and asked and abs(ours / asked - 1) > _DRIFT:
            said.append(f"{row.cell.method.title} J = {row.cell.n_samples} ({short(ours)} of {short(asked)})")
    return f"FISTA's own mean count is more than {100 * _DRIFT:g} % off in: {', '.join(said)}." if said else ""


def _dense(rows: Sequence[Measured]) -> str:
    titles: dict[str, int] = {}
    for row in rows:
        for record in row.good:
            whole, active = (figure_at(record["figures"], path) for path in ("n_components", "best_sample.active"))
            if whole and active and active > 0.5 * whole and not figure_at(record["figures"], "matched"):
                titles[row.cell.method.title] = whole
    if not titles:
        return ""
    names, whole = " and ".join(titles), max(titles.values())
    why = f"their codes are dense, more than half of the {whole} components are active, too many to match"
    return f"{names} have no figure under OMP and FISTA: {why}."
