"""What draws from a posterior reach: one of them, and the best of J, as the paper judges its models."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.data import Rows
from softspike.model import VariationalCoder

__all__ = ["Drawn", "Sampled", "draws", "sampled_errors"]

_NUMBERS = 2**24  # pixels or codes of all draws held at a time


class Drawn(NamedTuple):
    """Some rows, and the best of J draws for each."""

    x: Tensor  # (B, D)
    codes: Tensor  # (B, d)
    reconstruction: Tensor  # (B, D)
    best: Tensor  # (B,) its mean squared error
    one: Tensor  # (B,) that of the first draw
    kl: Tensor  # (B, d) divergence of each component from its prior


class Sampled(NamedTuple):
    n_samples: int
    one: float  # mean over rows and features of (x − x̂)², x̂ from a single draw
    best: float  # the same, of J draws the one of least error
    active: float  # mean non-zeros of a best draw


@torch.no_grad()
def draws(
    coder: VariationalCoder, rows: Rows, n_samples: int, seed: int = 0, device: torch.device | str = "cpu"
) -> Iterator[Drawn]:
    """All rows in order, some at a time, as the trained model codes them: settled temperature, warm-up, statistics."""
    random = torch.Generator(device=device).manual_seed(seed)
    widest = max(coder.generator.n_features, coder.generator.n_components)
    for numbers in torch.arange(len(rows)).split(max(_NUMBERS // (n_samples * widest), 1)):
        x = rows.take(numbers).to(device)
        evidence = coder.evidence(x)
        z = evidence.codes(evidence.noise(n_samples, random))
        errors = evidence.scores(z)
        best, winner = errors.min(0)
        codes = z[winner, torch.arange(len(x), device=x.device)]
        rebuilt = coder.generator.preview(codes[None])[0]
        yield Drawn(x, codes, rebuilt, best, errors[0], evidence.component_kl())


def sampled_errors(
    coder: VariationalCoder, rows: Rows, n_samples: int = 20, seed: int = 0, device: torch.device | str = "cpu"
) -> Sampled:
    """The errors of draws, over all rows."""
    one = best = active = 0.0
    for part in draws(coder, rows, n_samples, seed, device):
        one, best = one + float(part.one.double().sum()), best + float(part.best.double().sum())
        active += float((part.codes != 0).sum())
    n = len(rows)
    return Sampled(n_samples, one / n, best / n, active / n)
