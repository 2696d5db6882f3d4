"""Data whose codes are known, from the model itself: what a coder is calibrated on when nobody knows the true codes."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.posterior import SpikeSlab, draw

__all__ = ["Inputs", "Simulated", "simulate", "true_rates"]

_MOST_ROWS, _MOST_NUMBERS, _MOST_WEIGHTS = 2048, 2**22, 2**24


class Simulated(NamedTuple):
    x: Tensor  # (n, D)
    truth: Tensor  # (n, d), the codes on the known atoms


class Inputs(NamedTuple):
    """What simulated data share with the real inputs that they are to be like, one by one."""

    counts: Tensor  # (n,) of active components
    variances: Tensor  # (n,) of the noise, per feature

    def with_spread(self, spread: float) -> "Inputs":
        """Counts whose differences from their mean are `spread` times as large, rounded."""
        counts = self.counts.double()
        return self._replace(counts=(counts.mean() + spread * (counts - counts.mean())).round().long())


def simulate(
    atoms: Tensor,
    prior: SpikeSlab,
    rates: Tensor,
    like: Inputs,
    unknown: float,
    seed: int = 0,
    sizes: Callable[[Tensor], Tensor] = lambda z: z,
) -> Simulated:
    """x = Az + Uy + √v·ε: codes z and y from the prior's slab, atoms A, (D, d), others U that the model lacks.

    Each row has the count and the variance v of one of the inputs that it is like, drawn at random: so many components
    of z are active, i with about the probability rates[i], and component i of y with unknown·rates[i]. A simulation
    without U would be too kind: it trusts the dictionary, and all that goes wrong with a real one would be missing from
    it. Its columns are random mixtures of all atoms, Ag/‖Ag‖ with g Gaussian, which lie where the data do: in the span
    of the atoms. `sizes` makes other values of those drawn from the slab. At most 2,048 rows, the same for the same
    arguments, and fewer active entries of y among them for a smaller share.
    """
    shape = min(_MOST_ROWS, max(_MOST_NUMBERS // max(atoms.shape), 1)), atoms.shape[1]
    random = Generator(device=atoms.device).manual_seed(seed)

    def drawn() -> tuple[Tensor, Tensor]:
        chance = torch.rand(shape, generator=random, dtype=rates.dtype, device=rates.device)
        return sizes(draw(prior.slab.expand(shape), 1, random)[0]), chance

    own = torch.randint(len(like.counts), shape[:1], generator=random, device=atoms.device)
    (known, chance), (other, other_chance) = drawn(), drawn()
    truth = known * _largest(rates.logit(1e-6) - chance.logit(1e-6), like.counts[own])
    clean = truth @ atoms.T + (other * (other_chance < unknown * rates)) @ _mixtures(atoms, seed).T
    noise = torch.randn(clean.shape, generator=random, dtype=clean.dtype, device=clean.device)
    return Simulated(clean + like.variances[own, None].sqrt() * noise, truth)


def _largest(scores: Tensor, counts: Tensor) -> Tensor:
    """A mask (n, d) of the largest scores in each row, as many as counts, (n,), says."""
    place = scores.argsort(-1, descending=True).argsort(-1)
    return place < counts[:, None]


def true_rates(activity: Tensor, wrong: float, mean_count: Tensor) -> Tensor:
    """πᵢ ∝ max(ρᵢ − s, ρᵢ/10) with Σπᵢ = mean_count: how often each component is to be active in the simulated truth.

    ρᵢ is how often it is active in codes of real data, s how often a component is so by mistake: one that is hardly
    more active than that is hardly ever active in truth.
    """
    rates = torch.maximum(activity - wrong, activity / 10)
    return rates * (mean_count / rates.sum()).to(rates)


def _mixtures(atoms: Tensor, seed: int) -> Tensor:
    """(D, d) unit columns Ag/‖Ag‖; the weights are drawn on the host, so that they are the same on every device.

    Of dictionaries so large that d² weights would not fit, the first atoms alone are mixed.
    """
    d = atoms.shape[1]
    n_mixed = min(d, max(_MOST_WEIGHTS // d, 1))
    weights = torch.randn(n_mixed, d, generator=Generator().manual_seed(seed))
    return torch.nn.functional.normalize(atoms[:, :n_mixed] @ weights.to(atoms), dim=0)
