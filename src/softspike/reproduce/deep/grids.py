"""The tables of the deep study."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from softspike.report.grid import Grid
from softspike.reproduce.deep.cell import DENSE, METHODS
from softspike.reproduce.deep.paper import BY_DIMENSION, BY_SPARSITY
from softspike.reproduce.deep.rows import Records, methods_in
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.rows import off_by, short

__all__ = ["dimension_grid", "measures_grid", "share_grid"]

_ERROR = "error.best"


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
    compared = sorted({(r["figures"]["frechet"]["name"], r["figures"]["frechet"]["features"]) for r in records.all})
    features = "; or ".join(f"the {name}: {features}" for name, features in compared)
    notes = [
        f"Errors are squared, per pixel. The Fréchet distance is {features}; of rebuilt test images, and of images "
        "from the prior alone, each against the test images. Multi-information (MI) is the paper's estimate on 30 bin "
        "edges; corrected, it is less its value on column-permuted codes, which makes 0 as soon as no two codes share "
        "all bins, whatever they have in common. Collapse is the share of components with KL, or |z|, of at most 0.01 "
        "on 95 % of the inputs."
    ]
    return Grid("All measures", ["method", "d", "asked for", *_MEASURES], rows, notes)
