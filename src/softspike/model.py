"""The composition of the arrow: what the training loop, the estimator and the metrics call."""

import torch
from torch import Generator as Random
from torch import Tensor, nn
from torch.distributions import Distribution

from softspike.coder import Coder, Loss
from softspike.encoder import Encoder
from softspike.generator import Generator, LinearGenerator
from softspike.interval import interval_factor
from softspike.objective import Evidence, Objective, importance_weighted_bound
from softspike.posterior import Posterior
from softspike.prior import Prior
from softspike.solver.support import refit_on_support
from softspike.threshold import PositiveHard, Threshold, ThresholdedLaw, TrackedLevel

__all__ = ["VariationalCoder"]


def level_for_count(scores: Tensor, mean_count: float, weights: Tensor | None = None) -> Tensor:
    """The cut c at which Σᵦ wᵦ·#{i : scoreᵦᵢ > c} = mean_count; scores (B, d), weights (B,) of sum 1, equal if None."""
    n, d = scores.shape
    if weights is None:
        weights = torch.full((n,), 1 / n, dtype=torch.float64, device=scores.device)
    ordered, index = scores.flatten().sort(descending=True)
    reached = weights.double().repeat_interleave(d)[index].cumsum(0) > mean_count * (1 + 1e-12)
    first_over = int(reached.to(torch.uint8).argmax()) if bool(reached.any()) else n * d - 1
    return ordered[first_over]


class VariationalCoder(Coder):
    """encoder → posterior → threshold → generator, trained by an objective.

    >>> coder = VariationalCoder(
    ...     encoder=LinearEncoder(256), posterior=LaplacePosterior(256, 64), prior=LaplacePrior(0.1),
    ...     threshold=Threshold(ShiftedSoft, FixedLevel(0.25)), generator=Dictionary(256, 64),
    ...     objective=BestOf(20), beta=1e-2)                                             # doctest: +SKIP
    """

    beta: Tensor  # weight of the KL in the loss, 2v/D for a noise variance v
    widening: Tensor  # factor on √Var q(z|x) that makes intervals cover; 1 until calibrated
    cut: Tensor  # the score above which a component is active in the deterministic code; NaN until calibrated

    def __init__(
        self,
        encoder: Encoder,
        posterior: Posterior,
        prior: Prior,
        generator: Generator,
        objective: Objective,
        threshold: Threshold | None = None,
        beta: float = 1e-2,
        level_beta: float = 1e-3,
        refit_steps: int = 0,
    ):
        super().__init__()
        self.encoder, self.posterior, self.prior = encoder, posterior, prior
        if refit_steps and not isinstance(generator, LinearGenerator):
            raise TypeError("codes are refitted on the atoms of a linear generator; leave refit_steps at 0")
        self.threshold, self.generator, self.objective = threshold, generator, objective
        self.level_beta, self.refit_steps = level_beta, refit_steps
        self.register_buffer("beta", torch.tensor(float(beta)))
        self.register_buffer("cut", torch.tensor(float("nan")))
        self.register_buffer("widening", torch.ones(()))

    def evidence(self, x: Tensor, step: int | None = None) -> Evidence:
        """Everything known about a batch after one pass of the encoder."""
        h = self.encoder(x)
        # Networks may run in bfloat16; what decides the support, and what it costs, is in the precision of the data.
        with torch.autocast(x.device.type, enabled=False):
            h = h.to(x.dtype)
            level = None if self.threshold is None else self.threshold.level(h)
            beliefs = self.posterior(h, step)
        return Evidence(
            x, beliefs, level, self.prior.law, self.threshold, self.generator, self.beta, self.level_beta
        )  # fmt: skip

    def loss(self, x: Tensor, step: int, random: Random | None = None) -> Loss:
        """mean over the batch of the objective, plus the generator's penalty on the same scale."""
        terms = self.objective(self.evidence(x, step), random)
        total = terms.loss.mean() + terms.unit * self.generator.penalty()
        if self.tracked is not None and terms.active_slope is not None:
            total = total + self.tracked.observe(terms.active.mean(), terms.active_slope.mean())
            self._follow_noise(terms.misfit.detach().mean(), step)
        return Loss(total, terms.misfit.mean().detach(), terms.kl.mean().detach(), terms.active.mean().detach())

    @property
    def tracked(self) -> TrackedLevel | None:
        """The level that is steered to a target count, where the model has one."""
        level = None if self.threshold is None else self.threshold.level
        return level if isinstance(level, TrackedLevel) else None

    def _follow_noise(self, misfit: Tensor, step: int) -> None:
        """β = 2v/D at the noise variance v of the last hundred or so batches."""
        self.beta.lerp_(2 * misfit / self.generator.n_features, 1.0 if step == 0 else 0.01)

    def after_step(self, step: int) -> None:
        super().after_step(step)
        if self.tracked is not None:
            self.tracked.steer(step)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        groups = super().parameter_groups()
        if self.tracked is not None:  # steered, not descended
            groups["inference"] = [p for p in groups["inference"] if p is not self.tracked.value]
        return groups

    def law(self, x: Tensor) -> Distribution:
        """q(z|x) of the trained model, at its typical level."""
        return self._law_of(self.encoder(x))

    def _law_of(self, h: Tensor) -> Distribution:
        base = self.posterior(h, None).settled
        return base if self.threshold is None else self.threshold.law(base, self.threshold.level.typical(h))

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None, pull: float = 1.0) -> None:
        """Set the cut so that codes of x have `mean_active` non-zeros on average (dense laws have none), and then the
        width of intervals."""
        law = self.law(x)
        if hasattr(law, "score"):
            cut = level_for_count(law.score, mean_active, weights)
            self.cut.copy_(cut if self.cut.isnan() else torch.lerp(self.cut, cut, pull))
        self.widening.lerp_(interval_factor(self, x).to(self.widening.dtype), pull)

    def code(self, x: Tensor) -> Tensor:
        """The deterministic code (B, d), exact zeros; dense where the law has no mass at zero."""
        law = self.law(x)
        if not hasattr(law, "code"):
            return law.mean
        z = law.code() if self.cut.isnan() else law.code(self.cut)
        if not isinstance(self.generator, LinearGenerator) or not self.refit_steps:
            return z
        refitted = refit_on_support(x, self.generator.atoms, z, self.refit_steps)
        return torch.where(refitted * z > 0, refitted, z) if isinstance(law, PositiveHard) else refitted

    def std(self, x: Tensor) -> Tensor:
        """√Var q(z|x) times the factor of `interval_factor`: code ± 1.645·std is a 90 % interval, (B, d)."""
        return self.widening * self.law(x).variance.sqrt()

    def activation_probability(self, x: Tensor) -> Tensor:
        """γ = P(z ≠ 0 | x), (B, d)."""
        h = self.encoder(x)
        law = self._law_of(h)
        if self.threshold is not None and isinstance(law, ThresholdedLaw):
            return self.threshold.level.activation_probability(law, h)
        return law.activation_probability if hasattr(law, "activation_probability") else torch.ones_like(law.mean)

    def bound(self, x: Tensor, n_samples: int = 200, random: Random | None = None) -> Tensor:
        """The importance-weighted bound on log p(x) in nats, (B,)."""
        evidence = self.evidence(x)
        return importance_weighted_bound(evidence.log_weights(evidence.noise(n_samples, random)))
