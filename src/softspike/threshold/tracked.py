"""A level that keeps the expected number of active components at its target, and prices it."""

import torch
from torch import Tensor, nn

from softspike.threshold.level import Level

__all__ = ["TrackedLevel"]


class TrackedLevel(Level):
    """One λ for all components, chosen so that the batch mean of the count Σᵢγᵢ equals the target k.

    Training is a constrained problem: minimise L subject to G(λ) = k, with G the mean count. Its Lagrange multiplier
    is the price ρ = −(∂L/∂λ)/(∂G/∂λ), what one more active component is worth in nats; ρ·G joins the loss, and
    λ takes a damped Newton step towards G = k. No weight is left to tune.
    """

    target: Tensor
    price: Tensor
    count: Tensor
    slope: Tensor

    def __init__(self, value: float, target: float):
        super().__init__()
        self.value = nn.Parameter(torch.tensor(float(value)))
        self.register_buffer("target", torch.tensor(float(target)))
        self.register_buffer("price", torch.zeros(()))
        self.register_buffer("count", torch.zeros(()))  # G of the last batch
        self.register_buffer("slope", -torch.ones(()))  # ∂G/∂λ of the last batch

    def typical(self, h: Tensor) -> Tensor:
        return self.value

    def observe(self, count: Tensor, slope: Tensor) -> Tensor:
        """Remember G and ∂G/∂λ of this batch; returns ρ·G, to be added to the loss."""
        self.count.copy_(count.detach())
        self.slope.copy_(slope.detach().clamp_max(-1e-3))
        return self.price * count

    @torch.no_grad()
    def steer(self, step: int) -> None:
        """ρ goes 1/20 of the way to this batch's −(∂L/∂λ)/(∂G/∂λ); λ ← λ·exp(−0.3·(G − k)/(λ·∂G/∂λ)), at most 10 %."""
        if self.value.grad is None:
            return
        own = self.value.grad - self.price * self.slope  # ∂L/∂λ without the price's own share
        # Negative where the bound wants fewer than k: held at 0 there, the encoder and λ race each other to nothing.
        fair = (-own / self.slope).clamp(-20.0, 50.0)
        self.price.lerp_(fair, 0.5 if step < 20 else 0.05)
        move = -0.3 * (self.count - self.target) / (self.slope * self.value)
        self.value *= move.clamp(-0.1, 0.1).exp()
