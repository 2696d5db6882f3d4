"""Several settings of `SparseCoder` on the same data, trained together where they share shapes and schedule."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

from softspike.estimator import SparseCoder
from softspike.fitting import fit_several, pick_device

__all__ = ["sweep"]

_MAY_DIFFER = {"sparsity", "n_active", "beta", "random_state"}  # among coders that share shapes and schedule


def sweep(coders: Sequence[SparseCoder], X: Any) -> list[SparseCoder]:
    """Fit every coder to X, each as its own `fit` would, and return them.

    Coders that differ in sparsity, active count, β or seed alone are given to `softspike.train.train_replicas`
    together: on a GPU they go through one program where what differs is held in their tensors (not so the count of an
    autoencoder, nor what a solver does), on a CPU they take turns.

    >>> import numpy as np
    >>> from softspike import SparseCoder, sweep
    >>> X = np.random.default_rng(0).standard_normal((200, 16))
    >>> coders = [SparseCoder(32, n_active=count, max_steps=5, random_state=0) for count in (2, 4)]
    >>> [coder.target_active_ for coder in sweep(coders, X)]
    [2.0, 4.0]
    """
    if isinstance(coders, SparseCoder) or not all(isinstance(coder, SparseCoder) for coder in coders):
        raise TypeError(f"sweep was given {coders!r}, expected a list of SparseCoder")
    groups: dict[Hashable, list[SparseCoder]] = defaultdict(list)
    for coder in coders:
        groups[_company(coder)].append(coder)
    for group in groups.values():
        _fit(group, X)
    return list(coders)


def _company(coder: SparseCoder) -> Hashable:
    """Equal for coders that can train together."""
    parameters = coder.get_params(deep=False)
    if not isinstance(parameters["random_state"], Integral):
        return id(coder)
    return tuple((name, repr(value)) for name, value in sorted(parameters.items()) if name not in _MAY_DIFFER)


def _fit(group: Sequence[SparseCoder], X: Any) -> None:
    if len(group) == 1:
        group[0].fit(X)
        return
    begun = [coder.begin(X) for coder in group]  # each checks its own parameters
    rows, standardiser = begun[0]
    starts = [coder.starts(rows.n_features) for coder in group]
    device = pick_device(group[0].device)
    outcomes = iter(fit_several(rows, [start for own in starts for start in own], standardiser, device=device))
    for coder, own in zip(group, starts, strict=True):
        coder.adopt(list(islice(outcomes, len(own))), len(rows))
