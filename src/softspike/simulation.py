"""Data whose codes are known, from the model itself: what a coder is calibrated on when nobody knows the true codes."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.generator import LinearGenerator, random_atoms
from softspike.posterior import SpikeSlab, draw

__all__ = ["Simulated", "simulate", "simulations"]

_MOST_ROWS, _MOST_NUMBERS = 2048, 2**24
_UNKNOWN = (1 / 20, 1 / 40, 1 / 80)


class Simulated(NamedTuple):
    x: Tensor  # (n, D)
    truth: Tensor  # (n, d), the codes on the known atoms


def simulations(
    generator: LinearGenerator, prior: SpikeSlab, rates: Tensor, variance: Tensor, seed: int = 0
) -> Iterator[Simulated]:
    """The same data with ever fewer unknown atoms in it: a twentieth of all that is active, then half, then a quarter.

    A simulation that knew all atoms would be too kind: it trusts the dictionary, and all that goes wrong with a real
    one would be missing from it. The first whose codes are not far denser than codes of real data is the one to take:
    an atom that is missing takes many others to make up for it.
    """
    for share in _UNKNOWN:
        yield simulate(generator, prior, rates, variance, share, seed)


def simulate(
    generator: LinearGenerator, prior: SpikeSlab, rates: Tensor, variance: Tensor, unknown: float, seed: int = 0
) -> Simulated:
    """x = Az + Uy + √v·ε: codes z and y from the prior's slab, the model's atoms A, others U with random unit columns.

    Component i of z is active with probability rates[i], component i of y with unknown·rates[i]. At most 2,048 rows,
    the same for the same arguments.
    """
    atoms = generator.atoms
    n_features, n_components = atoms.shape
    shape = min(_MOST_ROWS, max(_MOST_NUMBERS // max(atoms.shape), 1)), n_components
    random = Generator(device=atoms.device).manual_seed(seed)

    def codes(rates: Tensor) -> Tensor:
        chance = torch.rand(shape, generator=random, dtype=rates.dtype, device=rates.device)
        return draw(prior.slab.expand(shape), 1, random)[0] * (chance < rates)

    truth, others = codes(rates), codes(unknown * rates)
    directions = random_atoms(n_features, n_components, Generator().manual_seed(seed)).to(atoms)
    clean = generator(truth) + others @ directions.T
    noise = torch.randn(clean.shape, generator=random, dtype=clean.dtype, device=clean.device)
    return Simulated(clean + variance.sqrt() * noise, truth)
