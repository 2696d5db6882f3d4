"""Probabilities that mean what they say: the posterior, put right by what simulation shows of it."""

import torch
from sklearn.isotonic import isotonic_regression
from torch import Tensor, nn

from softspike.threshold import Reweighted, ThresholdedLaw

__all__ = ["Calibration"]

_N_KNOTS = 64


class Calibration(nn.Module):
    """From the law q(z|x) as trained, and the energy ‖r‖² its code leaves of x, to a law that is calibrated.

    Its width follows the input, σᵢ(x)² = σᵢ²·(1 + ‖r‖²/m)/2 with m the typical energy: an input that the code explains
    badly is one whose code is in doubt. Its probability of being active is p = g(t), t = |μ|/σᵢ(x), with g increasing,
    where q itself has Φ(t − λ/σᵢ). g is found where the codes are known.
    """

    typical: Tensor  # m; NaN until fitted
    knots: Tensor  # (64,) values of t …
    chances: Tensor  # (64,) … and g there, linear in between

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("typical", torch.tensor(float("nan")))
        self.register_buffer("knots", torch.zeros(_N_KNOTS))
        self.register_buffer("chances", torch.zeros(_N_KNOTS))

    @property
    def fitted(self) -> bool:
        return not bool(self.typical.isnan())

    def forward(self, law: ThresholdedLaw, energy: Tensor) -> Reweighted:
        """The calibrated law; energy (B,)."""
        wide = _widened(law, energy / self.typical)
        return Reweighted(wide, self._chance(_margin(wide)), validate_args=False)

    def width(self, law: ThresholdedLaw, energy: Tensor) -> Tensor:
        """σᵢ(x), (B, d)."""
        return _widened(law, energy / self.typical).base.scale

    @torch.no_grad()
    def fit(self, typical: Tensor, law: ThresholdedLaw, energy: Tensor, code: Tensor, truth: Tensor) -> None:
        """Set g from the laws (n, d), energies (n,) and codes of simulated data whose codes are `truth`; `typical` is
        the median energy of real data. Entries with a margin t that is not finite, as of a row
        that has overflowed, teach nothing and are left out. Without any active entry nothing is done."""
        typical = typical.clamp_min(torch.finfo(typical.dtype).tiny)
        margin = _margin(_widened(law, energy / typical))
        known = margin.isfinite()
        if not (bool((known & (code != 0)).any()) and bool((known & (truth != 0)).any())):
            return
        self.typical.copy_(typical)
        knots, chances = _increasing(margin[known], truth[known] != 0)
        self.knots.copy_(knots)
        self.chances.copy_(chances)

    def _chance(self, margin: Tensor) -> Tensor:
        """g(t): between the knots a line, beyond them what it is at the last."""
        right = torch.searchsorted(self.knots, margin.contiguous()).clamp(1, _N_KNOTS - 1)
        low, high = self.knots[right - 1], self.knots[right]
        share = ((margin - low) / (high - low).clamp_min(1e-30)).clamp(0, 1)
        return torch.lerp(self.chances[right - 1], self.chances[right], share)


def _widened(law: ThresholdedLaw, energy: Tensor) -> ThresholdedLaw:
    """The law with σᵢ²·(1 + e)/2 for σᵢ²; e (B,) is the energy over the typical one."""
    width = ((1 + energy) / 2).sqrt()[:, None]
    base = type(law.base)(law.base.loc, law.base.scale * width, validate_args=False)
    return type(law)(base, law.level, validate_args=False)


def _margin(law: ThresholdedLaw) -> Tensor:
    """t = |μ|/σ, or μ/σ for a one-sided law."""
    return law.score * law.level / law.base.scale


def _increasing(margin: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
    """The increasing step function of t closest to what happened, as values at 64 knots.

    Entries are sorted by t and cut into runs, half of which have equally many active ones where these are, half
    equally many of the others: g rises between the two, within one of a hundred or so of the others where codes are
    nearly always right. Each run is one observation (mean t, share active), and isotonic regression makes the shares
    increase. Both are (n,); every t is finite, one or more active.
    """
    ordered, index = margin.sort()
    happened = active[index]
    passed = torch.stack([happened.cumsum(0) / happened.sum(), (~happened).cumsum(0) / (~happened).sum().clamp_min(1)])
    run = (passed.double().mean(0) * _N_KNOTS).long().clamp_max(_N_KNOTS - 1)
    size = torch.bincount(run, minlength=_N_KNOTS).double()
    place = torch.bincount(run, weights=ordered.double(), minlength=_N_KNOTS) / size
    share = torch.bincount(run, weights=happened.double(), minlength=_N_KNOTS) / size
    some = size > 0
    fair = isotonic_regression(share[some].cpu().numpy(), sample_weight=size[some].cpu().numpy(), y_min=0, y_max=1)
    knots, chances = place[some], torch.from_numpy(fair).to(place)
    short = _N_KNOTS - len(knots)
    return tuple(torch.cat([v, v[-1:].expand(short)]).to(margin.dtype) for v in (knots, chances))  # type: ignore[return-value]
