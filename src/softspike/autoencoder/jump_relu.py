"""JumpReLU: a learned threshold per component, trained through a kernel around the jump."""

import math

import torch
from torch import Tensor, nn

from softspike.autoencoder.base import Activation, Autoencoder
from softspike.generator import LinearGenerator
from softspike.prior import NormalPrior
from softspike.threshold import level_for_activity, level_for_count

__all__ = ["JumpReLUAutoencoder"]

# The controller of ρ: per step, a fiftieth of the relative miss of the count.
_PACE, _LEAST, _MOST = 0.02, 1e-7, 1e3


def _jump(size: Tensor, level: Tensor, width: float) -> Tensor:
    """1[s > θ], with −1/ε·1[|s − θ| < ε/2] as its derivative by θ and none by s; ε = width·θ."""
    fixed, band = level.detach(), width * level.detach()
    inside = (size - fixed).abs() < band / 2
    # θ − sg[θ] is exactly 0 in the forward pass, so the jump stays 0 or 1.
    return (size > fixed).to(size.dtype) - (inside / band) * (level - fixed)


class JumpReLUAutoencoder(Autoencoder):
    """zᵢ = uᵢ·1[size(uᵢ) > θᵢ] with learned log θᵢ; the loss adds ρ·mean count, and ρ is steered to the target count:

        ρ ← ρ·exp((count/k − 1)/50).

    Both jumps pass −1/ε·1[|size − θ| < ε/2] to θ, ε = θ/2. Rajamanoharan et al. (2024), "Jumping ahead". Afterwards
    one common factor on all θᵢ, `cut`, brings the count of unseen rows to the target.
    """

    price: Tensor  # ρ
    cut: Tensor

    def __init__(self, generator: LinearGenerator, target: float, positive: bool = False, patience: int = 100):
        super().__init__(generator, target, positive, patience)
        # Standardised data seen by unit-norm atoms is near N(0, 1), and half as often above a level as beyond ±it.
        share = min(target / len(self.bias), 0.499 if positive else 0.999)
        level = level_for_activity(NormalPrior(1.0).law, min(2 * share, 0.998) if positive else share)
        self.log_level = nn.Parameter(torch.full_like(self.bias, math.log(max(level, 1e-3))).detach())
        self.register_buffer("price", torch.tensor(1e-4))
        self.register_buffer("cut", torch.tensor(1.0))

    def activate(self, u: Tensor) -> Activation:
        on = _jump(self.size(u.detach()), self.log_level.exp(), 0.5)
        count = on.sum(-1).mean()
        miss = (count.detach() / self.target - 1).clamp(-1, 1)
        self.price.copy_((self.price * torch.exp(_PACE * miss)).clamp(_LEAST, _MOST))
        return Activation(u * on, self.price.clone() * count)

    def gauges(self) -> dict[str, Tensor]:
        """The mean of the levels θᵢ, and the price ρ of activity."""
        return {"level": self.log_level.detach().exp().mean(), "price": self.price}

    def select(self, u: Tensor) -> Tensor:
        return u * (self.size(u.detach()) > self.cut * self.log_level.exp())

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Set the factor so that codes of x have `mean_active` non-zeros on average."""
        score = self.size(self.affine(x)) / self.log_level.exp()
        self.cut.copy_(level_for_count(score, mean_active, weights))
