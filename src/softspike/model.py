"""The composition of the arrow: what the training loop, the estimator and the metrics call."""

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution

from softspike.coder import Coder, Loss
from softspike.encoder import Encoder
from softspike.generator import LinearGenerator
from softspike.objective import Evidence, Objective, importance_weighted_bound
from softspike.posterior import Posterior
from softspike.prior import Prior
from softspike.threshold import Threshold

__all__ = ["VariationalCoder"]


def upper_quantile(values: Tensor, share: float) -> Tensor:
    """The largest number that at most this share of the values exceed."""
    flat = values.flatten()
    keep = min(max(round(share * flat.numel()), 0), flat.numel() - 1)
    return (
        torch.topk(flat, keep + 1, sorted=True).values[-1]
        if keep < flat.numel() // 2
        else (torch.kthvalue(flat, flat.numel() - keep).values)
    )


class VariationalCoder(Coder):
    """encoder → posterior → threshold → generator, trained by an objective.

    >>> coder = VariationalCoder(
    ...     encoder=LinearEncoder(256), posterior=LaplacePosterior(256, 64), prior=LaplacePrior(0.1),
    ...     threshold=Threshold(ShiftedSoft, FixedLevel(0.25)), generator=Dictionary(256, 64),
    ...     objective=BestOf(20), beta=1e-2)                                             # doctest: +SKIP
    """

    cut: Tensor  # the score above which a component is active in the deterministic code; NaN until calibrated

    def __init__(
        self,
        encoder: Encoder,
        posterior: Posterior,
        prior: Prior,
        generator: LinearGenerator,
        objective: Objective,
        threshold: Threshold | None = None,
        beta: float = 1e-2,
        level_beta: float = 1e-3,
    ):
        super().__init__()
        self.encoder, self.posterior, self.prior = encoder, posterior, prior
        self.threshold, self.generator, self.objective = threshold, generator, objective
        self.beta, self.level_beta = beta, level_beta
        self.register_buffer("cut", torch.tensor(float("nan")))

    def evidence(self, x: Tensor, step: int | None = None) -> Evidence:
        """Everything known about a batch after one pass of the encoder."""
        h = self.encoder(x)
        level = None if self.threshold is None else self.threshold.level(h)
        return Evidence(
            x,
            self.posterior(h, step),
            level,
            self.prior.law,
            self.threshold,
            self.generator,
            self.beta,
            self.level_beta,
        )

    def loss(self, x: Tensor, step: int, random: Generator | None = None) -> Loss:
        """mean over the batch of the objective, plus the generator's penalty on the same scale (2/D)."""
        terms = self.objective(self.evidence(x, step), random)
        total = terms.loss.mean() + (2 / x[0].numel()) * self.generator.penalty()
        return Loss(total, terms.misfit.mean().detach(), terms.kl.mean().detach(), terms.active.mean().detach())

    def law(self, x: Tensor) -> Distribution:
        """q(z|x) of the trained model, at its typical level."""
        h = self.encoder(x)
        base = self.posterior(h, None).settled
        return base if self.threshold is None else self.threshold.law(base, self.threshold.level.typical(h))

    def score(self, x: Tensor) -> Tensor:
        """What decides the support of the code; a component is active where it exceeds the cut. Dense laws: +∞."""
        law = self.law(x)
        return law.score if hasattr(law, "score") else torch.full_like(law.mean, torch.inf)

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weight: float = 1.0) -> None:
        """Set the cut so that codes of x have `mean_active` non-zeros on average; a weight below 1 moves it part of the way.

        Dense laws have no cut to set.
        """
        scores = self.score(x)
        if torch.isinf(scores).all():
            return
        cut = upper_quantile(scores, mean_active / scores.shape[1])
        self.cut.copy_(cut if self.cut.isnan() else torch.lerp(self.cut, cut, weight))

    def code(self, x: Tensor) -> Tensor:
        """The deterministic code (B, d), exact zeros; dense where the law has no mass at zero."""
        law = self.law(x)
        if not hasattr(law, "code"):
            return law.mean
        return law.code() if self.cut.isnan() else law.code(self.cut)

    def activation_probability(self, x: Tensor) -> Tensor:
        """γ = P(z ≠ 0 | x), (B, d)."""
        h = self.encoder(x)
        base = self.posterior(h, None).settled
        if self.threshold is None:
            return getattr(base, "activation_probability", torch.ones_like(base.mean))
        law = self.threshold.law(base, self.threshold.level.typical(h))
        return self.threshold.level.activation_probability(law, h)

    def bound(self, x: Tensor, n_samples: int = 200, random: Generator | None = None) -> Tensor:
        """The importance-weighted bound on log p(x) in nats, (B,)."""
        evidence = self.evidence(x)
        return importance_weighted_bound(evidence.log_weights(evidence.noise(n_samples, random)))
