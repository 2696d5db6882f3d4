"""Generators and precisions by name: where the estimator's strings about deep models become objects."""

import math
from collections.abc import Sequence
from numbers import Integral

import numpy as np
import torch

from softspike.data import DataError, PixelRows, Rows, SubsetRows, check_rows
from softspike.data.chunks import chunks
from softspike.layers import ImageShape
from softspike.methods import ConvNetworks, Networks
from softspike.train import BFloat16, Float16, FullPrecision, Precision

__all__ = [
    "GENERATORS",
    "PRECISIONS",
    "check_generator",
    "check_shares",
    "image_shape_of",
    "networks_named",
    "precision_named",
]

GENERATORS = ("dictionary", "conv")
PRECISIONS = ("auto", "float32", "bfloat16", "float16")


def check_generator(name: str | Networks) -> None:
    """Raise ValueError for what is no generator."""
    if not isinstance(name, Networks) and name not in GENERATORS:
        raise ValueError(f"generator is {name!r}, expected one of {', '.join(GENERATORS)}, or a Networks object")


def networks_named(name: str | Networks, image_shape: Sequence[int] | None, mirrored: bool) -> Networks | None:
    """The networks of that name, None for a method's own dictionary; an object is returned as it is."""
    if isinstance(name, Networks):
        return name
    check_generator(name)
    if name == "dictionary":
        return None
    assert image_shape is not None
    return ConvNetworks(tuple(image_shape), mirrored)


def precision_named(name: str, device: torch.device) -> Precision | None:
    """The precision of that name; None for auto, which the model and the device decide."""
    if name not in PRECISIONS:
        raise ValueError(f"precision is {name!r}, expected one of {', '.join(PRECISIONS)}")
    made = {"float32": FullPrecision, "bfloat16": BFloat16, "float16": lambda: Float16(device)}
    return None if name == "auto" else made[name]()


def image_shape_of(n_features: int, given: Sequence[int] | None, stored: Sequence[int] | None) -> tuple[int, ...]:
    """What was given, else what the file says, else the square grey or colour image of so many pixels."""
    if given is not None:
        if not isinstance(given, Sequence | np.ndarray) or not all(isinstance(length, Integral) for length in given):
            raise ValueError(f"image_shape is {given!r}, expected (height, width) or (height, width, channels)")
        shape = tuple(int(length) for length in given)
        if math.prod(shape) != n_features:
            raise ValueError(
                f"image_shape is {shape}, which has {math.prod(shape)} pixels, but the data has {n_features} features; "
                "give (height, width) or (height, width, channels) of the flattened images"
            )
        ImageShape.of(shape)
        return shape
    shape = tuple(stored) if stored is not None else _square(n_features)
    try:
        ImageShape.of(shape)
    except ValueError as error:  # nobody asked for this shape: it is the data's
        raise DataError(str(error)) from error
    return shape


def _square(n_features: int) -> tuple[int, ...]:
    for channels in (1, 3):
        side = math.isqrt(n_features // channels)
        if side * side * channels == n_features:
            return (side, side) if channels == 1 else (side, side, channels)
    raise DataError(
        f"the data has {n_features} features, which is no square grey or colour image; "
        "give image_shape, as in (28, 28) or (64, 64, 3)"
    )


def check_shares(rows: Rows) -> None:
    """A DataError where values are not finite or lie outside [0, 1], which is all that a sigmoid can give."""
    check_rows(rows if not isinstance(rows, PixelRows) else _first_two(rows), min_samples=2, constant="keep")
    if isinstance(rows, PixelRows):  # between 0 and 1 by construction
        return
    low, high = math.inf, -math.inf
    for chunk in chunks(rows):
        low, high = min(low, float(chunk.x.min())), max(high, float(chunk.x.max()))
    if low < 0 or high > 1:
        raise DataError(
            f"the data runs from {low:.3g} to {high:.3g}, expected pixels from 0 to 1 for a generator that ends in a "
            "sigmoid; rescale it."
        )


def _first_two(rows: PixelRows) -> Rows:
    return SubsetRows(rows, torch.arange(min(len(rows), 2)))
