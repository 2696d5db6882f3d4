"""Codes of validation patches: one draw, the best of J, the deterministic code; and draws repeated for one input."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions import kl_divergence

from softspike.coder import Coder
from softspike.model import VariationalCoder

__all__ = ["Codes", "code_patches", "deterministic_codes", "repeated_draws"]

_DRAWN_NUMBERS = 2**22  # J·B·d drawn at a time


class Codes(NamedTuple):
    one: Tensor  # (N, d), a single draw
    best: Tensor  # (N, d), of J draws the one of least error: the paper's code of an input
    kl: Tensor | None  # (N, d), divergence of each base variable from its prior; None without a posterior


@torch.no_grad()
def code_patches(coder: Coder, x: Tensor, n_samples: int, seed: int = 0) -> Codes:
    """As in training, J draws are made and the best is kept; at the settled temperature and warm-up."""
    if not isinstance(coder, VariationalCoder):
        z = torch.cat([coder.code(part) for part in x.split(4000)])
        return Codes(z, z, None)
    random = torch.Generator(device=x.device).manual_seed(seed)
    found: list[tuple[Tensor, ...]] = []
    for part in x.split(_rows_at_a_time(coder, n_samples)):
        evidence = coder.evidence(part)
        z = evidence.codes(evidence.noise(n_samples, random))
        winner = evidence.misfit(z).argmin(0)
        settled = evidence.beliefs.settled
        kl = kl_divergence(settled, evidence.prior.expand(settled.batch_shape))
        found.append((z[0], z[winner, torch.arange(len(part), device=x.device)], kl))
    return Codes(*(torch.cat(parts) for parts in zip(*found, strict=True)))


@torch.no_grad()
def deterministic_codes(coder: Coder, x: Tensor, aside: Tensor, mean_active: float) -> Tensor:
    """The code without noise, its cut set on other patches so that as many components are active as in a draw."""
    if isinstance(coder, VariationalCoder):
        coder.calibrate(aside, mean_active)
    return torch.cat([coder.code(part) for part in x.split(4000)])


@torch.no_grad()
def repeated_draws(coder: Coder, x: Tensor, n_draws: int = 20, seed: int = 1) -> Iterator[Tensor]:
    """(n_draws, B, d), a few inputs at a time; a coder without a posterior repeats its code."""
    random = torch.Generator(device=x.device).manual_seed(seed)
    for part in x.split(_rows_at_a_time(coder, n_draws)):
        if isinstance(coder, VariationalCoder):
            evidence = coder.evidence(part)
            yield evidence.codes(evidence.noise(n_draws, random))
        else:
            yield coder.code(part).expand(n_draws, -1, -1)


def _rows_at_a_time(coder: Coder, n_samples: int) -> int:
    return max(_DRAWN_NUMBERS // (n_samples * coder.generator.n_components), 1)
