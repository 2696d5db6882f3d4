"""Whether coders differ in more than the numbers in their parameters and buffers."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["difference"]

_OF_EVERY_MODULE = set(vars(nn.Module()))
_COMPARED_BY_IDENTITY = ("builtins", "functools")  # functions, classes, partial functions


def difference(one: nn.Module, other: nn.Module) -> str | None:
    """In words, the first setting in which two modules differ, or None; parameters and buffers may hold other numbers.

    >>> difference(nn.LeakyReLU(0.1), nn.LeakyReLU(0.2))
    'negative_slope is 0.1 in one and 0.2 in another'
    """
    parts, others = dict(one.named_modules()), dict(other.named_modules())
    if parts.keys() != others.keys():
        return f"{min(parts.keys() ^ others.keys())} is a part of one and not of another"
    for name, part in parts.items():
        if type(part) is not type(others[name]):
            given = type(part).__name__, type(others[name]).__name__
            return f"{name or 'the coder'} is a {given[0]} in one and a {given[1]} in another"
        mine, theirs = _settings(part), _settings(others[name])
        for key in sorted(mine.keys() | theirs.keys()):
            if not _same(mine.get(key), theirs.get(key)):
                where = f"{name}.{key}" if name else key
                return f"{where} is {_said(mine.get(key))} in one and {_said(theirs.get(key))} in another"
    return None


def _settings(module: nn.Module) -> dict[str, object]:
    return {key: value for key, value in vars(module).items() if key not in _OF_EVERY_MODULE}


def _same(a: object, b: object) -> bool:
    """Equal, or of one type and the same all through: small objects often do not say when they are equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, nn.Module):
        return True  # held a second time: compared where it is registered
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        return len(a) == len(b) and all(map(_same, a, b))
    if a == b:
        return True
    silent = type(a).__eq__ is object.__eq__ and type(a).__module__ not in _COMPARED_BY_IDENTITY
    return silent and hasattr(a, "__dict__") and _same(vars(a), vars(b))


def _said(value: object) -> str:
    return type(value).__name__ if type(value).__repr__ is object.__repr__ else repr(value)
