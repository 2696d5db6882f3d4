"""Data of a model's own, with codes it knows, as like real data as the model can make it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from softspike.calibration.simulation import Inputs, Simulated, simulate, true_rates
from softspike.calibration.sizes import Sizes
from softspike.calibration.unknown import Likeness, Seen, most_alike
from softspike.posterior import SpikeSlab

__all__ = ["Simulator"]

_NOISIEST = 4.0  # medians of the noise variance; where a row has more, that is no noise
_SIZE_STEPS = 8  # of Richardson and Lucy


@dataclass(frozen=True)
class Simulator:
    """Simulates data like the real rows: their counts and their noise, with the share of unknown atoms of `most_alike`.

    Values are from the prior's slab, unless codes of such data would plainly be of other sizes than real ones. For
    intervals of noisy data they are of the sizes that leave codes as large as real ones in any case: how many small
    values are missed decides about these.
    """

    real: Seen  # what the coder sees of the real rows
    look: Callable[[Tensor], Seen]  # what it sees of others
    atoms: Tensor  # (D, d) to simulate from
    noise: Tensor  # (n,) variance of the noise of each real row, per feature
    activity: Tensor  # (d,) how often each component is active in real rows, by the trained law
    prior: SpikeSlab
    seed: int = 0

    @property
    def for_probabilities(self) -> Likeness:
        return self.resized if self._other_sizes else self.plain

    @property
    def for_intervals(self) -> Likeness:
        return self.resized if self._other_sizes or self.real.noisy else self.plain

    @cached_property
    def plain(self) -> Likeness:
        """With values from the prior's slab."""
        return most_alike(self.real, partial(self._data, self._slab), self.look)

    @cached_property
    def resized(self) -> Likeness:
        """With values of sizes that leave codes as large as real ones."""
        sizes, share = self._slab, self.plain.share
        for _ in range(_SIZE_STEPS):
            made = self._data(sizes, share, wrong=0.0, spread=1.0)
            sizes = sizes.closer(self.real.code, self.look(made.x).code, made.truth)
        return most_alike(self.real, partial(self._data, sizes), self.look)

    @cached_property
    def _other_sizes(self) -> bool:
        """Whether codes of the plain simulation are plainly of other sizes than real ones."""
        found = self.plain
        if not found.calibration.fitted:
            return False
        return not self._slab.fit(self.real.code, self.look(found.simulated.x).code)

    @cached_property
    def _slab(self) -> Sizes:
        return Sizes.of(self.prior.slab)

    def _data(self, sizes: Sizes, share: float, wrong: float, spread: float) -> Simulated:
        """With this share of unknown atoms, a share `wrong` of entries that are active in codes by mistake, and counts
        that differ `spread` times as much as real ones."""
        rates = true_rates(self.activity, wrong, self.real.mean_count)
        variances = torch.minimum(self.noise, _NOISIEST * self.noise.median())
        like = Inputs(self.real.counts, variances).with_spread(spread)
        return simulate(self.atoms, self.prior, rates, like, share, self.seed, sizes)
