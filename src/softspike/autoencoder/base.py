"""What the sparse autoencoders share: one affine layer, a choice of the few that pass, and help for the dead."""

from abc import abstractmethod
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn

from softspike.coder import Coder, Loss
from softspike.generator import LinearGenerator
from softspike.schedule import Time

__all__ = ["Activation", "Autoencoder"]

# Gao et al. (2024), "Scaling and evaluating sparse autoencoders": the auxiliary loss's weight.
_AUXILIARY_WEIGHT, _MOST_AUXILIARY = 1 / 32, 32


class Activation(NamedTuple):
    """What passes in one training step."""

    codes: Tensor  # (B, d)
    penalty: Tensor | float = 0.0  # added to the loss


class Autoencoder(Coder):
    """x̂ = A·act(W(x − b) + c) + b with unit-norm atoms A; W starts as Aᵀ and is free afterwards.

    b is the mean of the data, which whoever standardises them takes out, for non-negative codes as well. `act` chooses
    by the size of u = Wx + c: |u|, or u itself for non-negative codes. The loss is mean (x − x̂)² plus AuxK for the
    dead: components silent for `patience` steps must explain what is left of x, ‖e − A·topK(u_dead)‖²/‖e‖²/32 with
    e = x − x̂ held fixed.
    """

    generator: LinearGenerator
    silent: Tensor  # (d,) steps since a component was last active

    def __init__(self, generator: LinearGenerator, target: float, positive: bool = False, patience: int = 100):
        super().__init__()
        n_features, n_components = generator.atoms.shape
        self.generator, self.target, self.positive, self.patience = generator, target, positive, patience
        self.n_auxiliary = min(n_features, n_components, _MOST_AUXILIARY)
        self.weight = nn.Parameter(generator.atoms.detach().T.clone())
        self.bias = nn.Parameter(torch.zeros(n_components))
        self.register_buffer("silent", torch.zeros(n_components))

    @abstractmethod
    def activate(self, u: Tensor) -> Activation:
        """The codes of a training batch."""

    @abstractmethod
    def select(self, u: Tensor) -> Tensor:
        """The codes of any input, each row for itself."""

    def affine(self, x: Tensor) -> Tensor:
        """u = Wx + c, (B, d)."""
        return nn.functional.linear(x, self.weight, self.bias)

    def size(self, u: Tensor) -> Tensor:
        """What the choice is made by, ≥ 0."""
        return u.clamp_min(0) if self.positive else u.abs()

    def loss(self, x: Tensor, step: Time, random: Generator | None = None) -> Loss:
        """mean (x − x̂)² + penalty + AuxK."""
        u = self.affine(x)
        z, penalty = self.activate(u)
        residual = x - self.generator(z)
        misfit, on = residual.square().mean(), z.detach() != 0
        self.silent.add_(1).masked_fill_(on.any(0), 0)
        total = misfit + penalty + _AUXILIARY_WEIGHT * self._auxiliary(u, residual.detach())
        return Loss(total, misfit.detach(), torch.zeros_like(misfit), on.sum(-1).to(x.dtype).mean())

    def _auxiliary(self, u: Tensor, residual: Tensor) -> Tensor:
        """‖e − A·topK(u_dead)‖²/‖e‖²; without gradient where none is dead."""
        dead = u * (self.silent > self.patience)
        left = residual - self.generator(largest(dead, self.size(dead), self.n_auxiliary))
        return left.square().mean() / residual.square().mean().clamp_min(1e-30)

    def code(self, x: Tensor) -> Tensor:
        """The deterministic code (B, d), exact zeros."""
        return self.select(self.affine(x))

    def activation_probability(self, x: Tensor) -> Tensor:
        """|zᵢ|/maxⱼ|zⱼ|: an autoencoder knows no probability, so its activations normalised per row stand in."""
        size = self.code(x).abs()
        return size / size.amax(-1, keepdim=True).clamp_min(torch.finfo(size.dtype).tiny)


def largest(u: Tensor, size: Tensor, k: int) -> Tensor:
    """u where its size is among the k largest of its row and above 0, 0 elsewhere."""
    index = size.detach().topk(min(k, u.shape[-1]), dim=-1).indices
    kept = torch.zeros_like(u).scatter(-1, index, u.gather(-1, index))
    return kept * (size.detach() > 0)
