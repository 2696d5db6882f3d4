"""What `softspike inspect` does: pictures and a table of what the components of a model stand for."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from softspike.command.checking import check_kind
from softspike.data import DataError, Labels, Rows, StandardisedRows, has_labels, read_labels, read_rows
from softspike.estimator import SparseCoder
from softspike.looking import Look, look, traversals
from softspike.metric.attributes import chance_correlation
from softspike.metric.sampled import draws
from softspike.model import VariationalCoder
from softspike.report.captions import save_captioned
from softspike.report.figure import save_dictionary
from softspike.report.pictures import contrast, save_grid
from softspike.report.progress import decoding_shown
from softspike.report.table import print_table

__all__ = ["inspect_job"]

_MOST_ATOMS, _SHOWN, _MOST_TRAVERSED = 400, 12, 8


def inspect_job(
    run: Path,
    data: Path,
    out: Path | None,
    key: str | None,
    beside: Sequence[Path],
    components: str | None,
    device: str,
) -> None:
    """Writes dictionary.png, traversals.png, reconstructions.png and, where data has attributes, attributes.png."""
    coders = [_loaded(path, device) for path in (run, *beside)]
    with decoding_shown() as watch:
        rows = read_rows(data, key, watch)
    for path, coder in zip((run, *beside), coders, strict=True):
        check_kind(rows, data, coder.n_features_in_, path)
    labels = _labels(data, key)
    coder, out = coders[0], out or run / "inspect"
    model, standard, where = _parts(coder, rows)
    chosen = None if components is None else _numbers(components, model.generator.n_components)
    seen = look(model, standard, labels, coder.n_samples, where)
    out.mkdir(parents=True, exist_ok=True)
    shape = rows.image_shape
    strongest = seen.atoms[:, seen.order[:_MOST_ATOMS]]
    save_dictionary(out / "dictionary.png", strongest.T.cpu().numpy(), shape)
    moved = traversals(model, seen, chosen or _worth_moving(seen))
    pictures = coder.standardiser_.inverse(moved.images).cpu().numpy()
    save_grid(out / "traversals.png", list(pictures), shape)
    save_grid(out / "reconstructions.png", _reconstructions(coders, rows), shape)
    written = ["dictionary.png", "traversals.png", "reconstructions.png"]
    if labels is not None:
        _write_attributes(out / "attributes.png", seen, labels, shape)
        written.insert(0, "attributes.png")
    print_table(f"{run} on {data}", _lines(seen, labels, moved.components))
    print(f"wrote {', '.join(str(out / name) for name in written)}")


def _loaded(path: Path, device: str) -> SparseCoder:
    coder = SparseCoder.load(path, device=device)
    if not isinstance(coder.coder_, VariationalCoder):
        raise ValueError(
            f"{path} was trained by {coder.method!r}, which has no posterior to draw from; inspect another"
        )
    return coder


def _parts(coder: SparseCoder, rows: Rows) -> tuple[VariationalCoder, Rows, torch.device]:
    assert isinstance(coder.coder_, VariationalCoder)
    return coder.coder_, StandardisedRows(rows, coder.standardiser_), coder.standardiser_.mean.device


def _labels(data: Path, key: str | None) -> Labels | None:
    """None where the data has no attributes; broken ones are an error all the same."""
    if not has_labels(data):
        return None
    try:
        return read_labels(data, key)
    except DataError as error:
        if "expected attributes" in str(error):  # a parquet file of images alone
            return None
        raise


def _numbers(text: str, n_components: int) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--components is {text!r}, expected whole numbers with commas, as in 3,17,42") from None
    if not all(0 <= number < n_components for number in found):
        raise ValueError(f"--components is {text!r}, expected numbers from 0 to {n_components - 1}")
    return found


def _worth_moving(seen: Look) -> list[int]:
    """The components of the strongest atoms, and those that tell the attributes best come first."""
    first: list[int] = []
    if seen.best is not None:
        first = seen.best.component[seen.best.correlation.abs().argsort(descending=True)].tolist()
    return list(dict.fromkeys([*first, *seen.order.tolist()]))[:_MOST_TRAVERSED]


def _reconstructions(coders: Sequence[SparseCoder], rows: Rows) -> list[np.ndarray]:
    """The images, and below them what each model makes of them."""
    x = rows.take(torch.arange(min(len(rows), _SHOWN)))
    lines = [x.numpy()]
    for coder in coders:
        model, standard, device = _parts(coder, rows)
        first = next(draws(model, standard, coder.n_samples, device=device))
        lines.append(coder.standardiser_.inverse(first.reconstruction[:_SHOWN]).cpu().numpy())
    return lines


def _write_attributes(path: Path, seen: Look, labels: Labels, shape: tuple[int, ...] | None) -> None:
    """The atom of the best component of every attribute; where it goes with the attribute's absence, turned over."""
    assert seen.best is not None
    atoms = seen.atoms[:, seen.best.component] * seen.best.correlation.sign().to(seen.atoms.dtype)
    captions = [
        f"{name.replace('_', ' ')}\n{component} (r = {correlation:+.2f})"
        for name, component, correlation in zip(
            labels.names, seen.best.component.tolist(), seen.best.correlation.tolist(), strict=True
        )
    ]
    save_captioned(path, contrast(atoms.T.cpu().numpy()), captions, shape)


def _lines(seen: Look, labels: Labels | None, moved: list[int]) -> list[tuple[str, str, str]]:
    active = (seen.codes != 0).double().sum(1).mean()
    never = int((seen.codes == 0).all(0).sum())
    lines = [
        ("codes", str(len(seen.codes)), f"best draws; {float(active):.1f} of {seen.codes.shape[1]} active"),
        ("never active", str(never), "components, in these draws"),
        ("traversed", ", ".join(map(str, moved)), "from −3 to 3 times the size of their non-zero values"),
    ]
    if labels is not None and seen.best is not None:
        chance = chance_correlation(*seen.codes.shape)
        lines.append(
            ("by chance", f"|r| = {chance:.3f}", "exceeded by the best of components that know nothing in 1 %")
        )
        for name, component, r in zip(labels.names, *(field.tolist() for field in seen.best), strict=True):
            told = "" if abs(r) > chance else ", not told from chance"
            lines.append((f"attribute {name}", f"component {component}", f"r = {r:+.3f}{told}"))
    return lines
