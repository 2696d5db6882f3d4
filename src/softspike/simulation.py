"""Data whose codes are known, from the model itself: what a coder is calibrated on when nobody knows the true codes."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Generator, Tensor

from softspike.generator import random_atoms
from softspike.posterior import SpikeSlab, draw
from softspike.threshold import ThresholdedLaw

if TYPE_CHECKING:
    from softspike.model import VariationalCoder

__all__ = ["Simulated", "simulate"]

_MOST_ROWS, _MOST_NUMBERS = 2048, 2**24
_UNKNOWN = (1 / 20, 1 / 40, 1 / 80)
_DENSEST = 4 / 3  # how many times as many non-zeros codes of simulated data may have as codes of real data


class Simulated(NamedTuple):
    x: Tensor  # (n, D)
    truth: Tensor  # (n, d), the codes on the known atoms
    code: Tensor  # (n, d), what the coder makes of x


@torch.no_grad()
def simulate(coder: "VariationalCoder", law: ThresholdedLaw, code: Tensor, energy: Tensor) -> Simulated:
    """x′ = Az + Uy + √v·ε with codes z and y from the prior's slab, atoms A of the model and unknown atoms U.

    What is known of real data is q(z|x), its code and the energy ‖x − Az‖² that this leaves. Component i of z is as
    often active as there; v is the median of ‖x − Az‖²/(D − #z). A simulation that knew all atoms would be too kind: it
    trusts the dictionary, and all that goes wrong with a real one would be missing from it. So U has random unit
    columns, as many as A, and y is active a twentieth as often as z, or half or a quarter of that where codes of x′
    would otherwise be far denser than codes of x: a missing atom takes many others to make up for it.
    """
    n_features, counts = coder.generator.atoms.shape[0], (code != 0).sum(-1)
    variance = (energy / (n_features - counts).clamp_min(1)).median()
    rates, densest = law.activation_probability.mean(0), _DENSEST * counts.double().mean()
    for share in _UNKNOWN:
        simulated = _at(coder, rates, share, variance)
        if (simulated.code != 0).sum(-1).double().mean() <= densest:
            break
    return simulated


def _at(coder: "VariationalCoder", rates: Tensor, share: float, variance: Tensor) -> Simulated:
    prior, atoms = coder.prior.law, coder.generator.atoms
    assert isinstance(prior, SpikeSlab)
    shape = min(_MOST_ROWS, max(_MOST_NUMBERS // max(atoms.shape), 1)), atoms.shape[1]
    random = Generator(device=atoms.device).manual_seed(0)

    def codes(rates: Tensor) -> Tensor:
        chance = torch.rand(shape, generator=random, dtype=rates.dtype, device=rates.device)
        return draw(prior.slab.expand(shape), 1, random)[0] * (chance < rates)

    truth, unknown = codes(rates), codes(share * rates)
    n_features, n_components = atoms.shape
    others = random_atoms(n_features, n_components, Generator().manual_seed(0)).to(atoms)
    clean = coder.generator(truth) + unknown @ others.T
    noise = torch.randn(clean.shape, generator=random, dtype=clean.dtype, device=clean.device)
    x = clean + variance.sqrt() * noise
    return Simulated(x, truth, coder.code(x))
