"""Several settings of `SparseCoder` on the same data, trained together where they share shapes and schedule."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple

from softspike.choices import precision_named
from softspike.data import ArrayRows, Standardiser
from softspike.estimator import SparseCoder
from softspike.fitting import fit_several, pick_device
from softspike.train import Diverged, FullPrecision

__all__ = ["sweep"]

_MAY_DIFFER = {"sparsity", "n_active", "beta", "random_state"}  # among coders that share shapes and schedule


class Begun(NamedTuple):
    """A coder whose parameters and rows are checked."""

    coder: SparseCoder
    standardiser: Standardiser


def sweep(coders: Iterable[SparseCoder], X: Any) -> list[SparseCoder]:
    """Fit every coder to X, each as its own `fit` would, and return them.

    Coders that differ in sparsity, active count, β or seed alone are given to `softspike.train.train_replicas`
    together: on a GPU they go through one program where what differs is held in their tensors (not so the count of an
    autoencoder, nor what a solver does), on a CPU they take turns. Those that do not train in float32 train alone. A
    coder that diverges is fitted again on its own, as `fit` does it, with lower learning rates; if that fails too, the
    others are fitted all the same, and then what ended the first one is raised.

    >>> import numpy as np
    >>> from softspike import SparseCoder, sweep
    >>> X = np.random.default_rng(0).standard_normal((200, 16))
    >>> coders = [SparseCoder(32, n_active=count, max_steps=5, random_state=0) for count in (2, 4)]
    >>> [coder.target_active_ for coder in sweep(coders, X)]
    [2.0, 4.0]
    """
    if not isinstance(coders, Iterable):
        raise TypeError(f"sweep was given {coders!r}, expected a list of SparseCoder")
    coders = list(coders)
    if not all(isinstance(coder, SparseCoder) for coder in coders):
        raise TypeError(f"sweep was given {coders!r}, expected a list of SparseCoder")
    groups: dict[Hashable, list[Begun]] = defaultdict(list)
    for coder in coders:  # each checks its own parameters, all of them before the first is trained
        rows, standardiser = coder.begin(X)
        groups[_company(coder)].append(Begun(coder, standardiser))
    failed = [error for group in groups.values() for error in _fit(group, rows)]
    if failed:
        raise failed[0]
    return coders


def _company(coder: SparseCoder) -> Hashable:
    """Equal for coders that can train together."""
    parameters = coder.get_params(deep=False)
    if not isinstance(parameters["random_state"], Integral) or not _in_float32(coder):
        return id(coder)
    return tuple((name, repr(value)) for name, value in sorted(parameters.items()) if name not in _MAY_DIFFER)


def _in_float32(coder: SparseCoder) -> bool:
    """Whether `fit` would train it so on every device, as several are together."""
    precision = precision_named(coder.precision, pick_device(coder.device))
    return coder.generator != "conv" if precision is None else isinstance(precision, FullPrecision)


def _fit(group: Sequence[Begun], rows: ArrayRows) -> list[Diverged]:
    """What ended the training of those that did not come through."""
    if len(group) == 1:
        return _alone(group[0], rows)
    first = group[0]
    starts = [begun.coder.starts(rows.n_features) for begun in group]
    device = pick_device(first.coder.device)
    outcomes = iter(fit_several(rows, [start for own in starts for start in own], first.standardiser, device=device))
    failed: list[Diverged] = []
    for begun, own in zip(group, starts, strict=True):
        ended = list(islice(outcomes, len(own)))
        if any(outcome.diverged is None for outcome in ended):
            begun.coder.adopt(ended, len(rows))
        else:
            failed += _alone(begun, rows)
    return failed


def _alone(begun: Begun, rows: ArrayRows) -> list[Diverged]:
    try:
        begun.coder.fit_rows(rows, standardiser=begun.standardiser)
    except Diverged as error:
        return [error]
    return []
