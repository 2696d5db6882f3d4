"""90 % intervals about codes: how far from its code a coefficient may be, set where the codes are known."""

import math

import torch
from torch import Tensor, nn

from softspike.calibration.law import Calibration
from softspike.threshold import ThresholdedLaw

__all__ = ["ASIDE", "COVERED", "Intervals", "chance_within", "half_width"]

COVERED = 0.9
_NORMAL = math.sqrt(2) * float(torch.erfinv(torch.tensor(COVERED, dtype=torch.float64)))  # ±1.645σ hold 90 %
_WIDEST = 20.0  # more than that says that a law has no width at all, not that it is so many times too narrow
# Of simulated errors without noise: they are a little too large, as rows aside are few. On average over the problems of
# docs/results/codes.md intervals cover .90 with this factor and .92 without it, and .90 over others.
ASIDE = 0.94
_SPARE = 1.001  # an interval that holds 0 holds it whatever rounding does


class Intervals(nn.Module):
    """Standard deviations whose code ± 1.645·std hold nine in ten of the true coefficients of active components.

    Where codes leave noise, an active coefficient is, by a calibrated law of its own, z + s·ε with probability p, ε
    normal and s = scale·σᵢ(x), and 0 otherwise: a component that is not there. Its interval is the shortest about z
    that has the probability `level`, so that it holds 0 where p is smaller. Where codes leave next to nothing the level
    is NaN, and widths are scale·√Var of the law: there what is wrong is wrong with the atoms, by hardly more than the
    spread of single laws says. Components that are not active have √Var.
    """

    level: Tensor  # ℓ, or NaN
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.calibration = Calibration()
        self.register_buffer("level", torch.tensor(float("nan")))
        self.register_buffer("scale", torch.ones(()))

    @property
    def fitted(self) -> bool:
        return self.calibration.fitted

    def forward(self, law: ThresholdedLaw, energy: Tensor, code: Tensor) -> Tensor:
        """The standard deviations (B, d) of a law about its code, both (B, d), that leaves the energies (B,)."""
        calibrated = self.calibration(law, energy)
        spread = calibrated.variance.sqrt()
        if bool(self.level.isnan()):
            return self.scale * spread
        wide = self.scale * self.calibration.width(law, energy)
        half = half_width(calibrated.activation_probability, wide, code, self.level)
        return torch.where(code != 0, half / _NORMAL, spread)

    @torch.no_grad()
    def fit(
        self, calibration: Calibration, law: ThresholdedLaw, energy: Tensor, code: Tensor, truth: Tensor, noisy: bool
    ) -> None:
        """Set all of it from laws, energies and codes of simulated data whose codes are `truth`, of which 90 % of the
        active entries are then held; noisy where the data are. Nothing is done where nothing is active."""
        calibrated = calibration(law, energy)
        noisy = noisy and bool(((code != 0) & (truth != 0)).any())
        width = calibration.width(law, energy) if noisy else calibrated.variance.sqrt()
        known = (code != 0) & width.isfinite()
        if not bool(known.any()):
            return
        self.calibration.load_state_dict(calibration.state_dict())
        size, width, error = code[known].abs(), width[known], (code - truth).abs()[known]
        there = truth[known] != 0 if noisy else torch.ones_like(error, dtype=torch.bool)
        self.scale.copy_(_factor(error[there], width[there]) * (1 if noisy else ASIDE))
        chance = chance_within(calibrated.activation_probability[known], self.scale * width, size, error)
        self.level.copy_(_quantile(chance) if noisy else torch.full_like(self.level, torch.nan))


def half_width(chance: Tensor, width: Tensor, code: Tensor, level: Tensor) -> Tensor:
    """The least t with p·(2Φ(t/s) − 1) + (1 − p)·1[t ≥ |z|] ≥ ℓ, elementwise; p the chance, s the width, z the code."""

    def within(share: Tensor) -> Tensor:
        return width * math.sqrt(2) * torch.erfinv(share.clamp(0, 1 - 1e-6))

    chance = chance.clamp_min(1e-6)
    without = torch.where(level < chance, within(level / chance), torch.inf)
    return torch.minimum(without, torch.maximum(_SPARE * code.abs(), within(1 - (1 - level) / chance)))


def chance_within(chance: Tensor, width: Tensor, size: Tensor, t: Tensor) -> Tensor:
    """P(|truth − z| < t) = p·(2Φ(t/s) − 1) + (1 − p)·1[t > |z|], elementwise: the level that an interval must exceed to
    hold what is t away."""
    inside = torch.erf(t / (math.sqrt(2) * width.clamp_min(torch.finfo(width.dtype).tiny)))
    return chance * inside + (1 - chance) * (t > size)


def _factor(error: Tensor, width: Tensor) -> Tensor:
    """The 90 % quantile of error/width over that of a standard normal; at most 20."""
    ratio = error / width.clamp_min(torch.finfo(width.dtype).tiny)
    return (_quantile(ratio) / _NORMAL).clamp_max(_WIDEST)


def _quantile(values: Tensor) -> Tensor:
    """The least of the values (n,) that nine in ten do not exceed."""
    return values.kthvalue(min(math.ceil(COVERED * len(values)), len(values))).values
