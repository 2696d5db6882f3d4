"""The composition of the arrow: what the training loop, the estimator and the metrics call."""

import torch
from torch import Generator as Random
from torch import Tensor, nn
from torch.distributions import Distribution

from softspike.calibration import Calibration, Intervals, Seen, Simulated, Simulator
from softspike.coder import Coder, Loss
from softspike.data import TensorRows
from softspike.encoder import Encoder
from softspike.generator import Generator, LinearGenerator, atoms_of
from softspike.objective import Evidence, Objective, importance_weighted_bound
from softspike.posterior import Posterior, SpikeSlab
from softspike.prior import Prior
from softspike.refit import Refit
from softspike.schedule import Time
from softspike.solver.correction import Corrected, SupportCorrection
from softspike.threshold import (
    Hard,
    PositiveHard,
    Reweighted,
    Threshold,
    ThresholdedLaw,
    TrackedLevel,
    level_for_count,
    nearest_level_for_count,
)

__all__ = ["VariationalCoder"]


class VariationalCoder(Coder):
    """encoder → posterior → threshold → generator, trained by an objective.

    >>> coder = VariationalCoder(
    ...     encoder=LinearEncoder(256), posterior=LaplacePosterior(256, 64), prior=LaplacePrior(0.1),
    ...     threshold=Threshold(ShiftedSoft, FixedLevel(0.25)), generator=Dictionary(256, 64),
    ...     objective=BestOf(20), beta=1e-2)                                             # doctest: +SKIP
    """

    beta: Tensor  # weight of the KL in the loss, 2v/D for a noise variance v
    level_beta: Tensor  # weight of the KL of drawn levels
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
        correction: SupportCorrection | None = None,
    ):
        super().__init__()
        self.encoder, self.posterior, self.prior = encoder, posterior, prior
        if correction is not None and not isinstance(generator, LinearGenerator):
            raise TypeError("supports are corrected on the atoms of a linear generator; leave correction at None")
        self.threshold, self.generator, self.objective = threshold, generator, objective
        self.correction = correction
        self.register_buffer("beta", torch.tensor(float(beta)))
        self.register_buffer("level_beta", torch.tensor(float(level_beta)), persistent=False)
        self.register_buffer("cut", torch.tensor(float("nan")))
        self.calibration = Calibration()
        self.intervals = Intervals()

    def evidence(self, x: Tensor, step: Time | None = None) -> Evidence:
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

    def loss(self, x: Tensor, step: Time, random: Random | None = None) -> Loss:
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

    def gauges(self) -> dict[str, Tensor]:
        """The level λ, where one number says it, and the price ρ of activity, where it is steered."""
        level = None if self.threshold is None else getattr(self.threshold.level, "value", None)
        known = {} if level is None else {"level": level.detach()}
        return known if self.tracked is None else {**known, "price": self.tracked.price}

    def _follow_noise(self, misfit: Tensor, step: Time) -> None:
        """β = 2v/D at the noise variance v of the last hundred or so batches."""
        first = isinstance(step, int) and step == 0  # a step that the host does not know is never the first
        pull = 1.0 if first else 0.01
        self.beta.mul_(1 - pull).add_(2 * pull * misfit / self.generator.n_features)

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
        """q(z|x) of the trained model at its typical level, calibrated where it has been."""
        return self._calibrated(self.trained_law(x), x)

    def trained_law(self, x: Tensor) -> Distribution:
        """q(z|x) as the bound was trained with it, before calibration."""
        return self._law_of(self.encoder(x))

    def _law_of(self, h: Tensor) -> Distribution:
        base = self.posterior(h, None).settled
        return base if self.threshold is None else self.threshold.law(base, self.threshold.level.typical(h))

    def _calibrated(self, law: Distribution, x: Tensor, found: Corrected | None = None) -> Distribution:
        """The law about the corrected code, as calibrated; one that has not been, or cannot be, as it is."""
        if not (self.calibration.fitted and Reweighted.possible(law)):
            return law
        found = self._found(x, law) if found is None else found
        return self.calibration(_about(law, found), self._energy(x, found.code))

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Set the cut so that codes of x have `mean_active` non-zeros on average (dense laws have none), and then
        probabilities and intervals by simulation, where the prior speaks of z itself."""
        law = self._cut_for(x, mean_active, weights)
        linear = isinstance(self.generator, LinearGenerator)
        if linear and Reweighted.possible(law) and isinstance(self.prior.law, SpikeSlab):
            self._calibrate_by_simulation(x, law, self.prior.law)

    @property
    def counts_by_rows(self) -> bool:
        return not bool(self.cut.isnan())

    @torch.no_grad()
    def set_count(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """The cut alone."""
        self._cut_for(x, mean_active, weights)

    def _cut_for(self, x: Tensor, mean_active: float, weights: Tensor | None) -> Distribution:
        """Set the cut, and return the law of x that it was set by."""
        law = self.trained_law(x)
        if hasattr(law, "score"):
            # Probabilities of a spike may be equal in many places: where they are clipped, all those at the limit.
            level = nearest_level_for_count if isinstance(law, SpikeSlab) else level_for_count
            self.cut.copy_(level(law.score, mean_active, weights))
            if self.correction is not None and isinstance(law, ThresholdedLaw):
                self.correction.calibrate(x, atoms_of(self.generator), law.code(self.cut), mean_active, weights)
        return law

    def _calibrate_by_simulation(self, x: Tensor, law: Hard | PositiveHard, prior: SpikeSlab) -> None:
        simulator = self._simulator(x, law, prior)
        found = simulator.for_probabilities
        if found.calibration.fitted:
            self.calibration.load_state_dict(found.calibration.state_dict())
            intervals = simulator.for_intervals.intervals
            self.intervals.load_state_dict((intervals if intervals.fitted else found.intervals).state_dict())

    def simulated(self, x: Tensor, seed: int = 0) -> tuple[Simulated, Simulated] | None:
        """Data of this model's own with known codes, as like x as it can make it: to judge probabilities by, and
        intervals. None where the prior is not on z."""
        law, prior = self.trained_law(x), self.prior.law
        linear = isinstance(self.generator, LinearGenerator)
        if not (linear and Reweighted.possible(law) and isinstance(prior, SpikeSlab)):
            return None
        simulator = self._simulator(x, law, prior, seed)
        return simulator.for_probabilities.simulated, simulator.for_intervals.simulated

    def _simulator(self, x: Tensor, law: Hard | PositiveHard, prior: SpikeSlab, seed: int = 0) -> Simulator:
        """Its atoms B are those that fit x, which training never saw: as far from A as A is from the truth, or a little
        more. The noise of a row is ‖x − Bz‖²/(D − #z)."""
        real, refit = self._seen(x, law), Refit.of(self.generator, self.code, TensorRows(x))
        left = (x - real.code @ refit.atoms.T).square().sum(-1)
        lengths = atoms_of(self.generator).norm(dim=0) / refit.atoms.norm(dim=0).clamp_min(1e-12)
        return Simulator(
            real, self._seen, atoms=refit.atoms * lengths, noise=left / (x.shape[-1] - real.counts).clamp_min(1),
            activity=law.activation_probability.mean(0), prior=prior, seed=seed,
        )  # fmt: skip

    def _seen(self, x: Tensor, law: Distribution | None = None) -> Seen:
        law = self.trained_law(x) if law is None else law
        assert Reweighted.possible(law)
        found = self._found(x, law)
        return Seen(_about(law, found), self._energy(x, found.code), found.code)

    def code(self, x: Tensor) -> Tensor:
        """The deterministic code (B, d), exact zeros; dense where the law has no mass at zero."""
        law = self.trained_law(x)
        return self._found(x, law).code if hasattr(law, "code") else law.mean

    def _found(self, x: Tensor, law: Distribution) -> Corrected:
        """The code where |μ| exceeds the cut, corrected where the model has a correction, and what is left to gain."""
        z = law.code() if self.cut.isnan() else law.code(self.cut)  # type: ignore[attr-defined]
        if self.correction is None:
            return Corrected(z, law.base.loc - z if Reweighted.possible(law) else torch.zeros_like(z))
        return self.correction(x, atoms_of(self.generator), z)

    def _energy(self, x: Tensor, code: Tensor) -> Tensor:
        """‖x − Az‖², (B,)."""
        return (x - self.generator(code)).square().sum(-1)

    def code_and_std(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The code and its standard deviations, (B, d) both: code ± 1.645·std are 90 % intervals (`Intervals`)."""
        law = self.trained_law(x)
        if not hasattr(law, "code"):
            return law.mean, law.variance.sqrt()
        found = self._found(x, law)
        if self.intervals.fitted and Reweighted.possible(law):
            return found.code, self.intervals(_about(law, found), self._energy(x, found.code), found.code)
        return found.code, self._calibrated(law, x, found).variance.sqrt()

    def activation_probability(self, x: Tensor) -> Tensor:
        """γ = P(z ≠ 0 | x), (B, d)."""
        h = self.encoder(x)
        law = self._calibrated(self._law_of(h), x)
        if self.threshold is not None and isinstance(law, ThresholdedLaw):
            return self.threshold.level.activation_probability(law, h)
        return law.activation_probability if hasattr(law, "activation_probability") else torch.ones_like(law.mean)

    def bound(self, x: Tensor, n_samples: int = 200, random: Random | None = None) -> Tensor:
        """The importance-weighted bound on log p(x) in nats, (B,), of the law as it was trained: support correction and
        calibration, which come after training, change codes and probabilities but are no part of it."""
        evidence = self.evidence(x)
        return importance_weighted_bound(evidence.log_weights(evidence.noise(n_samples, random)))


def _about(law: Hard | PositiveHard, found: Corrected) -> Hard | PositiveHard:
    """The same law about z + Aᵀ(x − Az): for active components the refitted value, for others what they would gain."""
    base = type(law.base)(found.code + found.slope, law.base.scale, validate_args=False)
    return type(law)(base, law.level, validate_args=False)
