"""BatchTopK: k active components on average over the batch, more for inputs that need more."""

import torch
from torch import Tensor

from softspike.autoencoder.base import Activation, Autoencoder
from softspike.generator import LinearGenerator
from softspike.threshold import level_for_count

__all__ = ["BatchTopKAutoencoder"]


class BatchTopKAutoencoder(Autoencoder):
    """Training keeps the B·k largest of the whole batch; inference keeps what is above θ, the running cut of training.

    zᵢ = uᵢ·1[size(uᵢ) > θ],  θ ← θ + (θ_batch − θ)/100. Bussmann, Leask & Nanda (2024), "BatchTopK sparse
    autoencoders".
    """

    cut: Tensor  # θ, NaN before the first step

    def __init__(self, generator: LinearGenerator, target: float, positive: bool = False, patience: int = 100):
        super().__init__(generator, target, positive, patience)
        self.register_buffer("cut", torch.tensor(float("nan")))

    def activate(self, u: Tensor) -> Activation:
        size = self.size(u.detach())
        n_kept = min(max(round(self.target * len(u)), 1), u.numel() - 1)
        cut = size.flatten().kthvalue(size.numel() - n_kept).values  # the largest of those left out
        self.cut.copy_(torch.where(self.cut.isnan(), cut, torch.lerp(self.cut, cut, 0.01)))
        return Activation(u * (size > cut))

    def gauges(self) -> dict[str, Tensor]:
        """The running cut θ."""
        return {"level": self.cut}

    def select(self, u: Tensor) -> Tensor:
        return u * (self.size(u.detach()) > self.cut.nan_to_num(0.0))

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Set θ so that codes of x have `mean_active` non-zeros on average."""
        self.cut.copy_(level_for_count(self.size(self.affine(x)), mean_active, weights))
