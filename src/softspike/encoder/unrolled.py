"""The unrolled encoder: a few learned proximal steps on the dictionary itself."""

from typing import Protocol

import torch
from torch import Tensor, nn

from softspike.encoder.base import Encoder
from softspike.layers import gram_product

__all__ = ["UnrolledEncoder"]


class _HasAtoms(Protocol):
    """What the encoder needs of a generator, which lies to its right on the arrow."""

    @property
    def atoms(self) -> Tensor: ...


class _HasValue(Protocol):
    """What it needs of a level."""

    value: Tensor


class UnrolledEncoder(Encoder):
    """K steps of gated gradient descent on ½‖x − Az‖², tied to the generator's atoms A:

        μ₀ = η₀Aᵀx,   pₖ = gate(μₖ) − zₖ,   zₖ₊₁ = zₖ + tₖpₖ,   μₖ₊₁ = zₖ₊₁ + ηₖ₊₁Aᵀ(x − Azₖ₊₁),   z₀ = 0,

    with the smooth hard threshold gate(μ) = μ·sigmoid((|μ| − ℓₖλ)/(wₖλ)) around the model's level λ. tₖ is 1 unless
    that would raise ‖x − Az‖; then it is the longest step that does not, tₖ = min(1, 2(x − Azₖ)ᵀApₖ/‖Apₖ‖²), for each
    input its own. So no input can diverge, however coherent the atoms and whatever rates were learned on others. Only
    3K + 1 numbers are learned here; everything else is the dictionary. It returns μ_K, the location of the posterior.
    """

    def __init__(self, generator: _HasAtoms, level: _HasValue, n_steps: int, rate: float, positive: bool = False):
        super().__init__()
        # Held in a tuple so that they are not registered twice: the model owns them.
        self._shared = (generator, level)
        self.width = generator.atoms.shape[1]
        self.positive = positive
        self.log_rate = nn.Parameter(torch.full((n_steps + 1,), float(rate)).log())
        self.log_level = nn.Parameter(torch.linspace(0.4, 0.0, n_steps))
        self.log_width = nn.Parameter(torch.full((n_steps,), 0.25).log())

    def forward(self, x: Tensor) -> Tensor:
        generator, level = self._shared
        atoms, scale = generator.atoms, level.value.detach()
        rates, levels = self.log_rate.exp(), scale * self.log_level.exp()
        widths = scale * self.log_width.clamp(-3.0, 0.5).exp()
        product = gram_product(atoms)
        slope = x @ atoms  # Aᵀ(x − Az), at z = 0
        z, location = torch.zeros_like(slope), rates[0] * slope
        for k in range(len(levels)):
            size = location if self.positive else location.abs()
            path = location * torch.sigmoid((size - levels[k]) / widths[k]) - z
            bend = product(path)
            length = _longest_step(slope, path, bend)
            z, slope = z + length * path, slope - length * bend
            location = z + rates[k + 1] * slope
        return location


def _longest_step(slope: Tensor, path: Tensor, bend: Tensor) -> Tensor:
    """t = min(1, 2gᵀp/pᵀAᵀAp), at least 0: where the parabola ‖x − A(z + tp)‖² is back at its height, (B, 1)."""
    gain = (slope * path).sum(-1, keepdim=True)
    # The floor keeps the ratio's gradient finite where nothing moves.
    return (2 * gain / (path * bend).sum(-1, keepdim=True).clamp_min(1e-9)).clamp(0, 1)
