"""How much of the data lies on atoms that the model does not have: found by making simulated data like real data."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.calibration.intervals import Intervals
from softspike.calibration.law import Calibration
from softspike.calibration.simulation import Simulated
from softspike.threshold import Hard, PositiveHard

__all__ = ["Likeness", "Seen", "most_alike"]

# Less of it than a row in thousands has makes no difference, and with more than four times what is known there is
# little to learn.
_LEAST, _MOST, _HALVINGS = 2.0**-13, 4.0, 7
_FALLEN = 0.9  # of the count before: the correction of so large inputs adds what it cannot fit, and drops nearly all
_SMALL = 1e-3
_EQUAL = 0.02  # counts that differ by less: the share is then known to within a seventh or so of itself


class Seen(NamedTuple):
    """What a model makes of n inputs, and all that can be compared without the truth."""

    law: Hard | PositiveHard  # (n, d), about the corrected code
    energy: Tensor  # (n,) ‖x − Az‖², what the code leaves
    code: Tensor  # (n, d)

    @property
    def counts(self) -> Tensor:
        return (self.code != 0).sum(-1)

    @property
    def mean_count(self) -> Tensor:
        return self.counts.double().mean()

    @property
    def typical(self) -> Tensor:
        """The median energy, or a thousandth of the mean where half of all inputs are explained exactly."""
        return torch.maximum(self.energy.median(), self.energy.mean() / 1000)

    @property
    def noisy(self) -> bool:
        """Whether codes typically leave a thousandth of ‖z‖² or more: with less, what is wrong is hardly noise."""
        return bool(self.typical >= _SMALL * self.code.square().sum(-1).mean())


class Likeness(NamedTuple):
    share: float  # u
    simulated: Simulated
    calibration: Calibration  # fitted to it; not fitted where nothing was active
    intervals: Intervals  # the same


@torch.no_grad()
def most_alike(
    real: Seen, simulate: Callable[[float, float, float], Simulated], look: Callable[[Tensor], Seen]
) -> Likeness:
    """The simulation whose share u of unknown atoms balances the two things that it should share with real data:

        mean count of the codes of simulated inputs  =  mean of Σᵢ γᵢ(x) over real inputs x, as calibrated by it.

    Both should be the mean count of real codes, which is that of the simulated truth. The left side grows with u: an
    atom that is missing takes many others to make up for it. The right side falls: what the code leaves is then less
    often a component that was missed. No u need give both exactly; this one is equally far from both. Found by
    bisection of log u between 2⁻¹³ and 4, which ends where the two sides are within 2 % of each other, or where more
    unknown atoms leave fewer components, as of a model that has learned next to nothing. `simulate` also gets the share
    of entries that were active in the codes of the last simulation and not in its truth. Intervals are set by one more
    simulation, whose counts are only as far apart as leaves simulated codes no farther apart than real ones.
    """
    low, high, wrong, best, seen = _LEAST, _MOST, 0.0, None, real
    for _ in range(_HALVINGS):
        share = (low * high) ** 0.5
        simulated = simulate(share, wrong, 1.0)
        found = look(simulated.x)
        if best is not None and share > best.share and found.mean_count < _FALLEN * seen.mean_count:
            break
        best, seen = Likeness(share, simulated, _calibrated(real, simulated, found), Intervals().to(real.energy)), found
        ratio = _ratio(seen, real, best.calibration)
        wrong = float(((seen.code != 0) & (simulated.truth == 0)).double().mean())
        if abs(ratio - 1) < _EQUAL:
            break
        low, high = (share, high) if ratio < 1 else (low, share)
    assert best is not None  # the first is never thrown away
    if best.calibration.fitted:
        other = simulate(best.share, wrong, _spread(real, seen))
        best.intervals.fit(best.calibration, *look(other.x), other.truth, real.noisy)
    return best


def _calibrated(real: Seen, simulated: Simulated, seen: Seen) -> Calibration:
    calibration = Calibration().to(seen.energy)
    calibration.fit(real.typical, *seen, simulated.truth)
    return calibration


def _spread(real: Seen, seen: Seen) -> float:
    """How much of the spread of real counts to simulate: mistakes add to it, in real codes as in simulated ones."""
    return float((real.counts.double().std() / seen.counts.double().std()).clamp_max(1.0).nan_to_num(1.0))


def _ratio(seen: Seen, real: Seen, calibration: Calibration) -> float:
    """The left side over the right one; 0 where nothing is active."""
    if not calibration.fitted:
        return 0.0
    return float(seen.mean_count / calibration(real.law, real.energy).activation_probability.sum(-1).double().mean())
