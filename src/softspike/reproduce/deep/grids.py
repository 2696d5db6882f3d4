"""The tables of the deep study, and the sentences that follow from them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from softspike.report.grid import Grid
from softspike.reproduce.deep.cell import DENSE, METHODS
from softspike.reproduce.deep.paper import BY_DIMENSION, BY_SPARSITY
from softspike.reproduce.deep.rows import Records, methods_in
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.rows import off_by, short

__all__ = ["dimension_grid", "findings", "measures_grid", "share_grid"]

_ERROR = "error.best"
_TOLERANCE = 0.05


def dimension_grid(setting: DeepSetting, records: Records) -> Grid:
    """The error by dimension, at the usual share of active components."""
    title = f"Error per pixel, best of {setting.n_samples} draws, by dimension ({setting.share:.0%} active)"
    points = {f"d = {d}": _Point(d, setting.share, _published(setting, BY_DIMENSION, d)) for d in setting.dimensions}
    return _against_paper(title, points, records)


def share_grid(setting: DeepSetting, records: Records) -> Grid:
    """The error by the share of active components, at the middle dimension."""
    title = f"Error per pixel, best of {setting.n_samples} draws, by active share (d = {setting.middle})"
    sparse = Records([record for record in records.all if record["cell"]["method"] != DENSE])
    points = {f"{p:.0%}": _Point(setting.middle, p, _published(setting, BY_SPARSITY, p)) for p in setting.shares}
    return _against_paper(title, points, sparse)


class _Point(NamedTuple):
    n_components: int
    share: float
    paper: Mapping[str, float]  # method → the published error


def _published(setting: DeepSetting, figures: Mapping[str, Any], at: float) -> dict[str, float]:
    """A quick run has nothing to be compared with."""
    if setting.quick:
        return {}
    return {method: points[at] for method, points in figures[setting.name].items() if at in points}


def _against_paper(title: str, points: Mapping[str, _Point], records: Records) -> Grid:
    rows = []
    for method in methods_in(records):
        row = [METHODS[method]]
        for d, share, paper in points.values():
            ours, theirs = records.value(method, d, share, _ERROR), paper.get(method)
            row += [records.text(method, d, share, _ERROR, 3), short(theirs, 3), off_by(ours, theirs)]
        rows.append(row)
    return Grid(title, ["method", *(part for name in points for part in (name, "paper", "off by"))], rows)


_MEASURES = {
    "best of J": ("error.best", 3),
    "one draw": ("error.one", 3),
    "code": ("error.code", 3),
    "active: best draw": ("active_share.best", 2),
    "active: code": ("active_share.code", 2),
    "Fréchet: rebuilt": ("frechet.reconstructed", 3),
    "Fréchet: from the prior": ("frechet.generated", 3),
    "MI, bits": ("multi_information.published", 4),
    "corrected MI": ("multi_information.corrected", 2),
    "total correlation, bits": ("total_correlation", 3),
    "posterior collapse": ("collapse.posterior", 2),
    "feature collapse": ("collapse.feature", 2),
    "never active": ("collapse.never_active", 2),
}


def measures_grid(records: Records) -> Grid:
    """Everything that was measured of every cell."""
    rows = []
    for method, d, share in records.cells():
        texts = [records.text(method, d, share, path, digits) for path, digits in _MEASURES.values()]
        rows.append([METHODS[method], str(d), "–" if method == DENSE else f"{share:.0%}", *texts])
    first = records.all[0]["figures"]["frechet"] if records.all else {"name": "", "features": ""}
    notes = [
        f"Errors are squared, per pixel. The Fréchet distance is the {first['name']}: {first['features']}; of rebuilt "
        "test images, and of images from the prior alone, each against the test images. Multi-information (MI) is the "
        "paper's estimate on 30 bin edges; corrected, it is less its value on column-permuted codes. Collapse is the "
        "share of components with KL, or |z|, of at most 0.01 on 95 % of the inputs."
    ]
    return Grid("All measures", ["method", "d", "asked for", *_MEASURES], rows, notes)


def findings(setting: DeepSetting, records: Records) -> list[str]:
    """What the errors say about the paper's, in sentences; a quick run says nothing."""
    if setting.quick:
        return []
    found = [_within(setting, records), *(_trend(setting, records, method) for method in methods_in(records))]
    if records.diverged:
        names = sorted({f"{r['cell']['method']} d = {r['cell']['n_components']}" for r in records.diverged})
        found.append(f"Diverged: {', '.join(names)}.")
    return [sentence for sentence in found if sentence]


def _within(setting: DeepSetting, records: Records) -> str:
    """How many cells come within 5 % of the paper or better."""
    good, misses = 0, []
    for method, points in BY_DIMENSION[setting.name].items():
        for d, theirs in points.items():
            ours = records.value(method, d, setting.share, _ERROR)
            if ours is None:
                continue
            if ours <= theirs * (1 + _TOLERANCE):
                good += 1
            else:
                misses.append(
                    f"{METHODS[method]} d = {d} ({short(ours)} against {short(theirs)}, {off_by(ours, theirs)})"
                )
    if not good and not misses:
        return ""
    said = f"The error is within 5 % of the paper's or below it in {good} of {good + len(misses)} cells over dimensions"
    return said + (f"; misses: {', '.join(misses)}." if misses else ".")


def _trend(setting: DeepSetting, records: Records, method: str) -> str:
    """Whether a method gains from dimension, from the smallest measured to the largest."""
    values = {d: records.value(method, d, setting.share, _ERROR) for d in setting.dimensions}
    known = {d: value for d, value in values.items() if value is not None}
    if len(known) < 2:
        return ""
    (low, first), (high, last) = min(known.items()), max(known.items())
    verb = "falls" if last < first else "rises"
    said = f"{METHODS[method]}: the error {verb} by {abs(last / first - 1):.1%} from d = {low} to d = {high}"
    theirs = BY_DIMENSION[setting.name].get(method, {})
    if low in theirs and high in theirs:
        change = theirs[high] / theirs[low] - 1
        said += f" (the paper: {'falls' if change < 0 else 'rises'} by {abs(change):.1%})"
    best = min(known, key=lambda d: known[d])
    return said + f"; least at d = {best}."
