"""The unrolled encoder: a few learned proximal steps on the dictionary itself."""

import torch
from torch import Tensor, nn

from softspike.encoder.base import Encoder

__all__ = ["UnrolledEncoder"]


class UnrolledEncoder(Encoder):
    """K steps of gated gradient descent on ½‖x − Az‖², tied to the generator's atoms A:

        μ₀ = η₀Aᵀx,   zₖ = gate(μₖ),   μₖ₊₁ = zₖ + ηₖ₊₁Aᵀ(x − Azₖ),

    with the smooth hard threshold gate(μ) = μ·sigmoid((|μ| − ℓₖλ)/(wₖλ)) around the model's level λ. Only 3K + 1
    numbers are learned here; everything else is the dictionary. It returns μ_K, the location of the posterior.
    """

    def __init__(self, generator: nn.Module, level: nn.Module, n_steps: int, rate: float, positive: bool = False):
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
        evidence = x @ atoms
        # Two products a step with A, or one with AᵀA: the Gram form where that is the cheaper one.
        gram = atoms.T @ atoms if atoms.shape[1] <= 2 * atoms.shape[0] else None
        location = rates[0] * evidence
        for k in range(len(levels)):
            size = location if self.positive else location.abs()
            z = location * torch.sigmoid((size - levels[k]) / widths[k])
            slope = (x - z @ atoms.T) @ atoms if gram is None else evidence - z @ gram
            location = z + rates[k + 1] * slope
        return location
