"""Problems whose answer is known: those of the page of results, and as many others as one likes, drawn at random."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softspike.data import SparseSample, power_law_synthetic, synthetic

__all__ = ["PROBLEMS", "Drawn", "Problem", "drawn", "problem_named"]


@dataclass(frozen=True)
class Problem:
    sample: Callable[[int, int, float], SparseSample]  # rows, seed, noise
    n_train: int
    n_test: int
    n_active: float
    steps: int
    bar: float | None  # mean correlation of matched latents to reach
    known: str  # what is known of others
    positive: bool = True


def _calibration(
    n_features: int, n_sources: int, n_active: int, n_train: int, steps: int, positive: bool, **values: Any
) -> Problem:
    """Of which nothing is published: for probabilities and intervals alone."""
    return Problem(
        lambda n, seed, noise: synthetic(n, n_features, n_sources, n_active, seed, noise, positive, **values),
        n_train, 2000, n_active, steps, None, "calibration only", positive,
    )  # fmt: skip


def _uneven(
    n_features: int, n_sources: int, n_active: float, n_train: int, steps: int, positive: bool = True, **values: Any
) -> Problem:
    """Likewise; sources are on independently, at rates ∝ i^−0.6."""

    def sample(n: int, seed: int, noise: float) -> SparseSample:
        return power_law_synthetic(n, n_active, seed, n_features, n_sources, 0.6, 0.0, noise, positive, **values)

    return Problem(sample, n_train, 2000, n_active, steps, None, "calibration only", positive)


def never_small(normal: Tensor) -> Tensor:
    """Standard normal numbers → uniform in ±[½, 3/2]."""
    return normal.sign() * (0.5 + torch.erf(normal.abs() / 2**0.5))


def often_small(normal: Tensor) -> Tensor:
    """Standard normal numbers → Laplacian ones of scale 1."""
    return -normal.sign() * torch.log1p(-torch.erf(normal.abs() / 2**0.5).clamp_max(1 - 1e-6))


PROBLEMS = {
    "a": Problem(
        lambda n, seed, noise: synthetic(n, 8, 16, 3, seed, noise), 1024, 1024, 3, 4000, 0.691,
        "sparse coding .691, MLP .643, plain autoencoder .566",
    ),
    "b": Problem(
        lambda n, seed, noise: synthetic(n, 32, 64, 3, seed, noise), 1024, 1024, 3, 4000, 0.918,
        "bar .918, plain autoencoder .547",
    ),
    "wide": Problem(
        lambda n, seed, noise: synthetic(n, 64, 256, 6, seed, noise), 16_384, 2048, 6, 4000, None, "calibration only"
    ),
    "c": Problem(
        lambda n, seed, noise: power_law_synthetic(n, 10, seed, noise=noise), 50_000, 4096, 10, 2000, None,
        "no published figure",
    ),
    "d": _calibration(20, 40, 4, 6000, 2000, positive=False),
    "e": _calibration(32, 96, 5, 6000, 2000, positive=False),
    "f": _calibration(64, 160, 8, 6000, 2000, positive=False),
    "g": _calibration(30, 30, 6, 10_000, 3000, positive=True),
    "h": _calibration(40, 40, 12, 10_000, 3000, positive=False),
    "i": _calibration(24, 40, 4, 6000, 3000, positive=False, values=never_small),
    "j": _calibration(30, 60, 3, 8000, 3000, positive=False, values=never_small),
    "k": _calibration(48, 96, 6, 20_000, 3000, positive=True),
    "l": _calibration(32, 48, 5, 8000, 3000, positive=False, values=often_small),
    "m": _uneven(32, 32, 4, 4000, 3000),
    "n": _uneven(20, 30, 3, 3000, 3000),
}  # fmt: skip


VALUES: dict[str, Callable[[Tensor], Tensor]] = {
    "normal": lambda normal: normal,
    "never small": never_small,
    "Laplacian": often_small,
}


class Drawn(NamedTuple):
    """One of the problems that nobody chose."""

    n_features: int
    n_sources: int
    n_active: int
    n_train: int
    noise: float
    values: str
    uneven: bool
    positive: bool

    @property
    def problem(self) -> Problem:
        sizes = self.n_features, self.n_sources, self.n_active, self.n_train, 3000
        make = _uneven if self.uneven else _calibration
        return make(*sizes, positive=self.positive, values=VALUES[self.values])


def drawn(number: int) -> Drawn:
    """8 to 64 dimensions, one to three times as many sources, a sixteenth to a quarter of the dimensions active, 1,000
    to 16,000 rows, noise 0, .05 or .1, any of the values above, even or uneven rates, signed or not."""
    pick = random.Random(number)
    n_features = round(8 * 8 ** pick.random())
    n_sources = round(n_features * pick.choice((1, 1.5, 2, 3)))
    n_active = max(round(n_features * pick.uniform(1 / 16, 1 / 4)), 2)
    n_train, noise = round(1000 * 16 ** pick.random()), pick.choice((0.0, 0.05, 0.1))
    values, uneven, positive = pick.choice(list(VALUES)), pick.random() < 0.5, pick.random() < 0.5
    return Drawn(n_features, n_sources, n_active, n_train, noise, values, uneven, positive)


def problem_named(name: str) -> Problem:
    """Of the page, or "drawn-17" for number 17 of the others, counted from 0."""
    return PROBLEMS[name] if name in PROBLEMS else drawn(int(name.removeprefix("drawn-"))).problem
