"""The spike-and-slab law and its posterior head (Tonolini et al., 2020)."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Size, Tensor, nn
from torch.distributions import Distribution, Normal, constraints
from torch.nn.functional import logsigmoid

from softspike.posterior.beliefs import LOG_LIMIT, Beliefs, Posterior
from softspike.posterior.noise import draw, noise, place
from softspike.posterior.standard import standard_uniform
from softspike.schedule import Constant, Schedule, Time

__all__ = ["SpikeLogits", "SpikeSlab", "SpikeSlabPosterior", "clipped_log_of_rate", "log_of_rate", "logit_of_rate"]


class SpikeSlab(Distribution):
    """z = c·v, c ~ Bernoulli(γ), v from the slab: mass 1 − γ at 0 and density γ·slab(z) elsewhere.

    Draws use the straight-through binary concrete: the forward c = 1[logit γ + logistic noise > 0] is an exact
    Bernoulli draw; the backward pass is that of sigmoid((logit γ + noise)/τ).
    """

    arg_constraints: ClassVar[dict[str, Any]] = {"logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, slab: Distribution, logits: Tensor, temperature: float = 0.5, validate_args: bool | None = None):
        shape = torch.broadcast_shapes(slab.batch_shape, logits.shape)
        self.slab, self.logits, self.temperature = slab.expand(shape), logits.expand(shape), temperature
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> "SpikeSlab":
        slab, logits = self.slab.expand(batch_shape), self.logits.expand(batch_shape)
        return SpikeSlab(slab, logits, self.temperature, validate_args=False)

    @property
    def activation_probability(self) -> Tensor:
        return self.logits.sigmoid()

    @property
    def mean(self) -> Tensor:
        return self.activation_probability * self.slab.mean

    @property
    def variance(self) -> Tensor:
        """γ·Var(v) + γ(1−γ)·(E v)²: nothing cancels where the slab is narrow and far from 0."""
        gamma = self.activation_probability
        return gamma * self.slab.variance + gamma * (1 - gamma) * self.slab.mean.square()

    @property
    def score(self) -> Tensor:
        """γ: what decides the support of the deterministic code."""
        return self.activation_probability

    def code(self, cut: Tensor | float = 0.5) -> Tensor:
        """The slab's mean where γ exceeds the cut."""
        return self.slab.mean * (self.score > cut)

    def rsample(self, sample_shape: Size | list[int] | tuple[int, ...] = Size()) -> Tensor:
        n = Size(sample_shape).numel()
        return draw(self, n).reshape(Size(sample_shape) + self.batch_shape)

    def log_prob(self, z: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(z)
        return torch.where(z == 0, logsigmoid(-self.logits), logsigmoid(self.logits) + self.slab.log_prob(z))


@noise.register
def _(law: SpikeSlab, n_samples: int, generator: Generator | None = None) -> Tensor:
    """(J, B, 2, d): the slab's noise and the logistic noise of the spike."""
    slab = noise(law.slab, n_samples, generator)
    u = standard_uniform(law.logits, n_samples, generator)
    return torch.stack([slab, torch.logit(u, eps=1e-6)], dim=-2)


@place.register
def _(law: SpikeSlab, noise: Tensor) -> Tensor:
    value, noisy = place(law.slab, noise[..., 0, :]), law.logits + noise[..., 1, :]
    soft = torch.sigmoid(noisy / law.temperature)
    hard = (noisy > 0).to(value.dtype)
    return value * (hard + (soft - soft.detach()))


class SpikeLogits(NamedTuple):
    """What the spike's head says."""

    believed: Tensor  # logit γ, for the KL and whatever else asks for γ
    drawn: Tensor  # the logit of the rate at which training draws non-zeros


def logit_of_rate(raw: Tensor) -> SpikeLogits:
    """The head's output read as logit γ: P(active) = γ."""
    return SpikeLogits(raw, raw)


def log_of_rate(raw: Tensor) -> SpikeLogits:
    """log γ fed where logit γ belongs: P(active) = γ/(1 + γ)."""
    return SpikeLogits(raw, logsigmoid(raw))


def clipped_log_of_rate(raw: Tensor) -> SpikeLogits:
    """As the published scripts: log γ = −max(−raw, 0), γ held within [1e-6, 1 − 1e-6], and log γ fed as a logit.

    Where raw > 0 the rate is 1 and neither the KL nor the draw moves the head.
    """
    log_rate = -torch.relu(-raw)
    return SpikeLogits(torch.logit(log_rate.exp().clamp(1e-6, 1 - 1e-6)), log_rate)


class SpikeSlabPosterior(Posterior):
    """Heads for the slab's μ and log σ² and for the spike; ω and τ are functions of the step.

    While training the slab is N(ωμ, (ωσ + √(1−ω))²), so that it starts as the standard normal.
    """

    def __init__(
        self,
        width: int,
        n_components: int,
        warm_up: Schedule = Constant(1.0),
        temperature: Schedule = Constant(0.5),
        read_spike: Callable[[Tensor], SpikeLogits] = logit_of_rate,
    ):
        super().__init__()
        self.location = nn.Linear(width, n_components)
        self.log_variance = nn.Linear(width, n_components)
        self.spike = nn.Linear(width, n_components)
        self.warm_up, self.temperature, self.read_spike = warm_up, temperature, read_spike

    def forward(self, h: Tensor, step: Time | None = None) -> Beliefs:
        location, scale, raw = (
            self.location(h),
            (0.5 * self.log_variance(h).clamp(-LOG_LIMIT, LOG_LIMIT)).exp(),
            self.spike(h),
        )
        logits = self.read_spike(raw)
        tau = self.temperature(step) if step is not None else self.temperature.final
        settled = SpikeSlab(Normal(location, scale, validate_args=False), logits.believed, tau, validate_args=False)
        omega = self.warm_up(step) if step is not None else 1.0
        slab = Normal(omega * location, omega * scale + (1 - omega) ** 0.5, validate_args=False)
        return Beliefs(SpikeSlab(slab, logits.drawn, tau, validate_args=False), settled)
