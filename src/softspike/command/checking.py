"""What commands check before they work: rows of the right kind, files to write, options that mean something."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softspike.data import DataError, Rows, check_rows
from softspike.methods import DENSE_METHODS, SAMPLING_METHODS
from softspike.notice import notice
from softspike.run import RunError

__all__ = ["about", "check_kind", "check_target", "refuse_both", "tell_idle", "usual_method"]


@contextmanager
def about(data: Path) -> Iterator[None]:
    """Says of which file it is, where rows cannot be used."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{data}: {error}") from error


def check_kind(rows: Rows, data: Path, n_features: int, run: Path) -> None:
    """Raise ValueError where rows of `data` are not of the kind that `run` was trained on, or cannot be used."""
    if rows.n_features != n_features:
        raise RunError(
            f"{data} has {rows.n_features} features, {run} was trained on {n_features}; "
            "give data of the kind the run was trained on"
        )
    with about(data):
        check_rows(rows, min_samples=1, constant="keep")


def check_target(out: Path, ending: str, what: str, data: Path | None = None) -> None:
    """Raise ValueError where `out` is no file to write `what` into: a folder, the data itself, or of another ending."""
    if out.is_dir():
        raise ValueError(
            f"{out} is a folder, expected a file for {what}; add a name, as in {out}/{_name(what, ending)}"
        )
    if out.suffix != ending:
        raise ValueError(f"{out} does not end in {ending}, expected such a file for {what}; give {out.stem}{ending}")
    if data is not None and out.exists() and data.exists() and out.samefile(data):
        raise ValueError(f"{out} is the data itself, expected another file for {what}; nothing was written")


def _name(what: str, ending: str) -> str:
    return {"the codes": "codes", "the page": "report"}[what] + ending


def usual_method(generator: object) -> str:
    """The default: the library's own unrolls a dictionary, which convolutional networks do not have."""
    return "centred-gaussian" if generator == "conv" else "hard-gaussian"


def refuse_both(options: Mapping[str, Any]) -> None:
    """Raise ValueError where two options contradict each other."""
    if "sparsity" in options and "n_active" in options:
        raise ValueError("--sparsity and --active were both given, expected one: each says how many are to be active")


def tell_idle(options: Collection[str], method: object) -> None:
    """Warn of options that this method takes no notice of."""
    for name, option in (("beta", "--beta"), ("n_samples", "--samples")):
        if name in options and method not in SAMPLING_METHODS:
            notice(f"{option} makes no difference: method {method!r} draws no samples")
    for name, option in (("sparsity", "--sparsity"), ("n_active", "--active")):
        if name in options and method in DENSE_METHODS:
            notice(f"{option} makes no difference: codes of method {method!r} have no zeros")
