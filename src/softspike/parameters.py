"""The checks of an estimator's parameters: what was given, what was needed."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

__all__ = ["check_parameters"]


def check_parameters(parameters: Mapping[str, Any], n_components: int) -> None:
    """Raise ValueError, in one sentence, for the first parameter of `SparseCoder` that cannot be used."""
    _require(
        "n_components", n_components, Integral, lambda v: v >= 1, "a whole number ≥ 1, or None for as many as features"
    )
    for name in ("max_steps", "batch_size", "n_samples", "encoder_steps"):
        _require(name, parameters[name], Integral, lambda v: v >= 1, "a whole number ≥ 1")
    if parameters["n_active"] is None:
        _require("sparsity", parameters["sparsity"], Real, lambda v: 0 < v < 1, "a share strictly between 0 and 1")
    else:
        needed = f"a count above 0 and at most n_components = {n_components}"
        _require("n_active", parameters["n_active"], Real, lambda v: 0 < v <= n_components, needed)
    if parameters["learning_rate"] is not None:
        _require(
            "learning_rate", parameters["learning_rate"], Real, lambda v: 0 < v < float("inf"), "a number > 0, or None"
        )
    if parameters["constant_features"] not in ("error", "keep"):
        raise ValueError(f"constant_features is {parameters['constant_features']!r}, expected 'error' or 'keep'")


def _require(name: str, value: Any, kind: type, fine: Callable[[Any], bool], needed: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not fine(value):
        raise ValueError(f"{name} is {value!r}, expected {needed}")
