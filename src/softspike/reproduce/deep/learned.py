"""What the models of the middle dimension have learned: pictures, and the attributes that their components tell."""

from pathlib import Path

import numpy as np

from softspike.looking import rows_seen
from softspike.metric.attributes import chance_correlation
from softspike.report.grid import Grid, markdown
from softspike.reproduce.deep.cell import METHODS
from softspike.reproduce.deep.figures import Learned, attribute_order, draw_learned
from softspike.reproduce.deep.setting import DeepSetting
from softspike.reproduce.deep.store import DeepStore

__all__ = ["learned_part"]


def learned_part(
    store: DeepStore, setting: DeepSetting, conventions: str, folder: Path, stem: str, originals: bool
) -> list[str]:
    """The pictures of the middle cells, and the attributes that their components tell."""
    learned: dict[str, dict[str, np.ndarray]] = {}
    for name, record in store.measured().items():
        cell, pictures = record["cell"], store.pictures(name)
        if pictures and cell["conventions"] in (conventions, "equations") and cell["method"] not in learned:
            learned[cell["method"]] = pictures
    learned = {method: learned[method] for method in METHODS if method in learned}
    if not learned:
        return []
    written = draw_learned(setting, learned, folder, stem, originals)
    rows = ", ".join(METHODS[method] for method in learned)
    first = "Test images, and the" if originals else "Of test images, which are not ours to show, the"
    said = {
        "reconstructions": f"{first} best of {setting.n_samples} draws by, from top to bottom: {rows}.",
        "samples": f"Images from the prior alone, in the same order: {rows}.",
        "dictionaries": "Least-squares dictionaries estimated from codes, three rows for each model in the same order: "
        "the strongest atoms, then atoms from evenly further down.",
        "traversals": "Three components of each model led from −3 to 3 of their spread, those that tell an "
        "attribute best; each row one component.",
        "attributes": "The estimated atom of the component that goes with each of the twelve best-told attributes, one "
        "row for each model; light is more of it where the attribute holds. From left to right: "
        f"{', '.join(_attribute_names(learned)[:12])}. Whether a component tells an attribute at all is in the table; "
        "a least-squares atom looks like the data even where it does not.",
    }
    lines = [f"#### What was learned at d = {setting.middle}", ""]
    for name, path in written.items():
        lines += [f"![{name}]({path.name})", "", f"*{said[name]}*", ""]
    n_rows = rows_seen(int(store.config()["images"].split("+")[0]), setting.n_features)
    return [*lines, markdown(_attribute_grid(learned, n_rows, setting.middle))]


def _attribute_names(learned: Learned) -> list[str]:
    """By how well any model tells them."""
    names = next(iter(learned.values()))["attribute_names"]
    return [str(names[i]).replace("_", " ") for i in attribute_order(learned)]


def _attribute_grid(learned: Learned, n_rows: int, n_components: int) -> Grid:
    chance = chance_correlation(n_rows, n_components)

    def cell(r: float) -> str:
        return f"{r:+.2f}" if abs(r) > chance else f"({r:+.2f})"

    found = [[cell(m["attribute_correlations"][i]) for m in learned.values()] for i in attribute_order(learned)]
    rows = [[name, *values] for name, values in zip(_attribute_names(learned), found, strict=True)]
    note = (
        f"Point-biserial correlation of each attribute with the component that goes with it most closely, on the first "
        f"{n_rows:,} training images. In parentheses: not above {chance:.3f}, which the best of {n_components} "
        "components that know nothing exceeds once in a hundred times."
    )
    return Grid("Attributes", ["attribute", *(METHODS[method] for method in learned)], rows, [note])
