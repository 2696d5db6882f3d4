"""TopK: the same number of active components for every input."""

import math

from torch import Tensor

from softspike.autoencoder.base import Activation, Autoencoder, largest
from softspike.notice import notice

__all__ = ["TopKAutoencoder"]

_FAR = 0.02  # of a target, from where on a count misses it


class TopKAutoencoder(Autoencoder):
    """zᵢ = uᵢ where the size of uᵢ is among the k largest of its row, 0 elsewhere; k is the target, rounded.

    Makhzani & Frey (2014), "k-sparse autoencoders"; Gao et al. (2024).
    """

    @property
    def k(self) -> int:
        return max(math.floor(self.target + 0.5), 1)

    def activate(self, u: Tensor) -> Activation:
        return Activation(self.select(u))

    def select(self, u: Tensor) -> Tensor:
        return largest(u, self.size(u), self.k)

    @property
    def counts_by_rows(self) -> bool:
        return False

    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Nothing to do: the count is what it is by construction, which may not be what was asked for."""
        if abs(self.k / mean_active - 1) > _FAR:
            notice(f"topk has {self.k} active in every row where {mean_active:g} were asked for: give a whole number")
