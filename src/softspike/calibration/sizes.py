"""How large the active coefficients of simulated data are: such that simulated codes are as large as real ones."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.distributions import Distribution

__all__ = ["Sizes"]

_PARTS = 32
_DOUBT = 5.0  # entries: a part of which fewer were found follows the next larger one more than its own
_UNLIKE = 0.15  # of all active entries would have to change their part; where values are normal, an eighth at most


@dataclass(frozen=True)
class Sizes:
    """A law of |z|: P(|z| in part k) = wₖ/Σw, where part k is what |N(0, s²)| puts between its quantiles k/32 and
    (k + 1)/32, and has its shape. With equal weights it is |N(0, s²)| itself."""

    scale: Tensor  # s, () or (d,)
    weights: Tensor  # w, (32,)

    @classmethod
    def of(cls, slab: Distribution) -> "Sizes":
        """Of N(0, s²), or of its half: s² = E z² of both."""
        scale = (slab.variance + slab.mean.square()).sqrt()
        return cls(scale, torch.ones(_PARTS, dtype=torch.float64, device=scale.device))

    def __call__(self, z: Tensor) -> Tensor:
        """Draws z (…, d) of the slab as draws of this law: each keeps its sign, and its rank among all."""
        if bool((self.weights == 1).all()):
            return z
        ends = torch.nn.functional.pad(self.weights.cumsum(0) / self.weights.sum(), (1, 0))
        rank = self._rank(z)
        part = torch.searchsorted(ends, rank, right=True).clamp(1, _PARTS)
        inside = (rank - ends[part - 1]) / (ends[part] - ends[part - 1]).clamp_min(1e-12)
        moved = (part - 1 + inside.clamp(0, 1)) / _PARTS
        return (z.sign() * self.scale * math.sqrt(2) * moved.clamp_max(1 - 1e-7).erfinv()).to(z.dtype)

    def fit(self, real: Tensor, found: Tensor) -> bool:
        """Whether codes of real and of simulated data are of like sizes: ½Σ|r(c) − g(c)| ≤ 0.15 + what chance makes it,
        r and g the shares of their active entries in each part."""
        chance = sum(_PARTS / max(int((codes != 0).sum()), 1) for codes in (real, found)) / (2 * math.pi)
        return bool((self._shares(real) - self._shares(found)).abs().sum() / 2 <= _UNLIKE + math.sqrt(chance))

    def closer(self, real: Tensor, found: Tensor, truth: Tensor) -> "Sizes":
        """The law one step of Richardson and Lucy on, from codes of real data, codes of simulated data, and its truth:

            wₖ ← wₖ · mean of r(c)/g(c) over entries with a true size in part k and a code in part c that is not 0,

        with r and g the shares of real and of simulated codes in part c. A size that is hardly ever found says nothing
        of itself, and follows the next larger one.
        """
        ratio = self._shares(real) / self._shares(found)
        both = (found != 0) & (truth != 0)
        part, gain = self._part(truth)[both], ratio[self._part(found)[both]]
        sums, counts = (torch.bincount(part, w, minlength=_PARTS).tolist() for w in (gain, torch.ones_like(gain)))
        factors, next_larger = [1.0] * _PARTS, 1.0
        for k in reversed(range(_PARTS)):
            factors[k] = next_larger = (sums[k] + _DOUBT * next_larger) / (counts[k] + _DOUBT)
        weights = self.weights * self.weights.new_tensor(factors)
        return replace(self, weights=weights / weights.mean())

    def _rank(self, z: Tensor) -> Tensor:
        """P(|N(0, s²)| < |z|)."""
        return torch.erf((z.abs() / self.scale).double() / math.sqrt(2))

    def _part(self, z: Tensor) -> Tensor:
        return (self._rank(z) * _PARTS).long().clamp_max(_PARTS - 1)

    def _shares(self, codes: Tensor) -> Tensor:
        """Of the active entries, with one more in each part, so that none is empty."""
        counts = torch.bincount(self._part(codes)[codes != 0], minlength=_PARTS).double() + 1
        return counts / counts.sum()
