"""Data whose codes are known, from the model itself: what a coder is calibrated on when nobody knows the true codes."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.generator import LinearGenerator
from softspike.posterior import SpikeSlab, draw

__all__ = ["Like", "Simulated", "simulate", "supports", "true_rates"]

_MOST_ROWS, _MOST_NUMBERS, _MOST_WEIGHTS = 2048, 2**22, 2**24


class Simulated(NamedTuple):
    x: Tensor  # (n, D)
    truth: Tensor  # (n, d), the codes on the known atoms


class Like(NamedTuple):
    """Rows that simulated ones are to be like, (n,) both."""

    counts: Tensor  # how many components are active
    variances: Tensor  # of the noise


def simulate(
    generator: LinearGenerator, prior: SpikeSlab, rates: Tensor, rows: Like, unknown: float, seed: int = 0
) -> Simulated:
    """x = Az + Uy + √v·ε: codes z and y from the prior's slab, the model's atoms A, others U that the model lacks.

    Each row has the variance v and the count of one of `rows`, drawn at random; which components of z are active is
    drawn by their rates, (d,). Component i of y is active with probability unknown·rates[i]. A simulation without U
    would be too kind: it trusts the dictionary, and all that goes wrong with a real one would be missing from it. Its
    columns are random mixtures of all atoms, Ag/‖Ag‖ with g Gaussian: in the directions in which atoms are, where data
    are that they were learned from. At most 2,048 rows, the same for the same arguments, and fewer active entries of y
    among them for a smaller share.
    """
    atoms = generator.atoms
    shape = min(_MOST_ROWS, max(_MOST_NUMBERS // max(atoms.shape), 1)), atoms.shape[1]
    random = Generator(device=atoms.device).manual_seed(seed)

    def uniform() -> Tensor:
        return torch.rand(shape, generator=random, dtype=rates.dtype, device=rates.device)

    def codes(active: Tensor) -> Tensor:
        return draw(prior.slab.expand(shape), 1, random)[0] * active

    own = torch.randint(len(rows.counts), (shape[0],), generator=random, device=atoms.device)
    truth, others = codes(supports(rates, rows.counts[own], uniform())), codes(uniform() < unknown * rates)
    clean = generator(truth) + others @ _mixtures(atoms, seed).T
    noise = torch.randn(clean.shape, generator=random, dtype=clean.dtype, device=clean.device)
    return Simulated(clean + rows.variances[own, None].sqrt() * noise, truth)


def supports(rates: Tensor, counts: Tensor, u: Tensor) -> Tensor:
    """Row n: the counts[n] components with the largest logit ρᵢ − logit uᵢ, from uniform u, (n, d).

    Those with a difference above 0, uᵢ < ρᵢ, would be drawn each for itself, and their number would be left to chance.
    Where counts are Σρᵢ, component i is still active about as often as its rate ρᵢ says (Pareto sampling). Components
    with the rate 0 never are.
    """
    least = torch.finfo(u.dtype).eps
    keys = (torch.logit(rates, eps=least) - torch.logit(u, eps=least)).masked_fill(rates <= 0, -torch.inf)
    last = keys.sort(-1, descending=True).values.gather(1, (counts[:, None] - 1).clamp_min(0))
    return (keys >= last) & (keys > -torch.inf) & (counts[:, None] > 0)


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
