"""An estimator's parameters: checked (what was given, what was needed), made plain for a file, turned into a seed."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["check_parameters", "plain_parameters", "seed_of"]


# Beyond these a slip of the finger is likelier than a wish: far above what anyone has trained, and still computable.
_MOST = {"max_steps": 10**12, "batch_size": 2**24, "n_samples": 2**16, "encoder_steps": 2**10, "n_init": 2**10}
_MOST_ROUNDS = 2**10
_MOST_COMPONENTS, _MOST_NUMBERS = 2**24, 2**32  # of a dictionary: 16 GiB in float32
_LARGEST, _SMALLEST = 1e12, 1e-12  # of learning rates and weights: float32 holds their squares


def check_parameters(parameters: Mapping[str, Any], n_components: int, n_features: int) -> None:
    """Raise ValueError, in one sentence, for the first parameter of `SparseCoder` that cannot be used."""
    if parameters["n_components"] is not None:
        needed = "a whole number ≥ 1, or None for as many as features"
        _require("n_components", n_components, Integral, lambda v: v >= 1, needed)
        _require_at_most("n_components", n_components, _MOST_COMPONENTS)
    if n_components * n_features > _MOST_NUMBERS:
        raise ValueError(
            f"n_components is {n_components} and the data has {n_features} features, expected a product of at most "
            f"{_MOST_NUMBERS}; give fewer components or narrower data"
        )
    for name, most in _MOST.items():
        _require(name, parameters[name], Integral, lambda v: v >= 1, "a whole number ≥ 1")
        _require_at_most(name, parameters[name], most)
    for name in ("correction_rounds", "dictionary_refits"):
        _require(name, parameters[name], Integral, lambda v: v >= 0, "a whole number ≥ 0; 0 is for none")
        _require_at_most(name, parameters[name], _MOST_ROUNDS)
    if parameters["n_active"] is None:
        _require("sparsity", parameters["sparsity"], Real, lambda v: 0 < v < 1, "a share strictly between 0 and 1")
    else:
        needed = f"a count above 0 and below n_components = {n_components}"
        _require("n_active", parameters["n_active"], Real, lambda v: 0 < v < n_components, needed)
    if parameters["learning_rate"] is not None:
        _require(
            "learning_rate", parameters["learning_rate"], Real, lambda v: 0 < v <= _LARGEST,
            f"a number > 0 and at most {_LARGEST:g}, or None",
        )  # fmt: skip
    if not isinstance(parameters["positive"], bool | np.bool_):
        raise ValueError(f"positive is {parameters['positive']!r}, expected True or False")
    seed = parameters["random_state"]
    if seed is not None and not isinstance(seed, np.random.RandomState):
        _require("random_state", seed, Integral, lambda v: 0 <= v < 2**32, "a whole number from 0 to 2³² − 1, or None")
    if parameters["beta"] is not None:
        needed = f"a number > 0, from {_SMALLEST:g} to {_LARGEST:g}, or None"
        _require("beta", parameters["beta"], Real, lambda v: _SMALLEST <= v <= _LARGEST, needed)
    if not isinstance(parameters["mirrored"], bool | np.bool_):
        raise ValueError(f"mirrored is {parameters['mirrored']!r}, expected True or False")
    if parameters["constant_features"] not in ("error", "keep"):
        raise ValueError(f"constant_features is {parameters['constant_features']!r}, expected 'error' or 'keep'")


def plain_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON can hold them; a random state that is not a number is not kept."""
    if not isinstance(parameters["method"], str):
        raise ValueError("a composed model cannot be saved by name; save coder_.state_dict() and compose it again")
    if not isinstance(parameters["generator"], str):
        raise ValueError("networks given as an object cannot be saved by name; save coder_.state_dict() instead")
    seed = parameters["random_state"]
    kept = {**parameters, "random_state": seed if isinstance(seed, Integral) else None}
    if kept["image_shape"] is not None:
        kept["image_shape"] = [int(length) for length in kept["image_shape"]]
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in kept.items()}


def seed_of(random_state: Any) -> int:
    """The number itself, or one drawn from what scikit-learn makes of it."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _require_at_most(name: str, value: Any, most: int) -> None:
    _require(name, value, Integral, lambda v: v <= most, f"at most {most}")


def _require(name: str, value: Any, kind: type, fine: Callable[[Any], bool], needed: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not fine(value):
        given = repr(value)
        raise ValueError(f"{name} is {given if len(given) <= 80 else given[:79] + '…'}, expected {needed}")
