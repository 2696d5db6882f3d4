"""Posterior heads: what they predict, and what warm-ups and temperatures change."""

import pytest
import torch
from torch import nn
from torch.distributions import Laplace, Normal

from softspike.posterior import (
    GaussianAround,
    GaussianPosterior,
    LaplacePosterior,
    SpikeSlab,
    SpikeSlabPosterior,
    clipped_log_of_rate,
    log_of_rate,
)
from softspike.schedule import Exponential, Ramp
from softspike.threshold import TrackedLevel


@pytest.mark.parametrize("build", [GaussianPosterior, LaplacePosterior, SpikeSlabPosterior])
def test_without_warm_up_the_step_changes_nothing(build: type[nn.Module]) -> None:
    head, h = build(4, 3), torch.randn(5, 4)
    for step in (None, 0, 1000):
        sampled, settled = head(h, step)
        assert sampled.batch_shape == settled.batch_shape == (5, 3)
        torch.testing.assert_close(sampled.mean, settled.mean)
        torch.testing.assert_close(sampled.variance, settled.variance)


def test_gaussian_head_predicts_log_variance() -> None:
    head, h = GaussianPosterior(4, 3), torch.randn(5, 4)
    law = head(h).settled
    assert isinstance(law, Normal)
    torch.testing.assert_close(law.loc, head.location(h))
    torch.testing.assert_close(law.variance, head.log_variance(h).exp())


def test_laplace_head_predicts_log_scale_and_warms_up_the_noise() -> None:
    head, h = LaplacePosterior(4, 3, warm_up=Ramp(0.1, 2e-4, delay=1500)), torch.randn(5, 4)
    scale = head.log_scale(h).exp()
    for step, omega in ((0, 0.1), (1500, 0.1), (2500, 0.3), (6000, 1.0), (10**6, 1.0)):
        sampled, settled = head(h, step)
        assert isinstance(sampled, Laplace)
        torch.testing.assert_close(sampled.loc, head.location(h))
        torch.testing.assert_close(sampled.scale, omega * scale)
        torch.testing.assert_close(settled.scale, scale)
    torch.testing.assert_close(head(h).sampled.scale, scale)


def test_spike_slab_head_warms_up_from_a_standard_normal() -> None:
    head = SpikeSlabPosterior(4, 3, warm_up=Ramp(0.0, 2e-4), temperature=Exponential(1.0, 0.9995, 0.5))
    h = torch.randn(5, 4)
    location, scale = head.location(h), (0.5 * head.log_variance(h)).exp()
    for step, omega in ((0, 0.0), (2500, 0.5), (5000, 1.0)):
        sampled, settled = head(h, step)
        assert isinstance(sampled, SpikeSlab)
        torch.testing.assert_close(sampled.slab.loc, omega * location)
        torch.testing.assert_close(sampled.slab.scale, omega * scale + (1 - omega) ** 0.5)
        torch.testing.assert_close(sampled.logits, head.spike(h))
        assert sampled.temperature == pytest.approx(max(0.9995**step, 0.5))
        torch.testing.assert_close(settled.slab.loc, location)
        torch.testing.assert_close(settled.slab.scale, scale)
    assert head(h).sampled.temperature == 0.5


@pytest.mark.parametrize(
    ("read", "rate"),
    [
        (log_of_rate, torch.sigmoid),
        (clipped_log_of_rate, lambda raw: raw.clamp_max(0).exp().clamp(1e-6, 1 - 1e-6)),
    ],
)
def test_published_readings_of_the_spike(read, rate) -> None:
    """Feeding log γ where logit γ belongs gives the rate γ/(1 + γ); the divergence is still paid at γ."""
    head, h = SpikeSlabPosterior(4, 3, read_spike=read), torch.randn(5, 4)
    gamma = rate(head.spike(h))
    sampled, settled = head(h)
    torch.testing.assert_close(sampled.activation_probability, gamma / (1 + gamma))
    torch.testing.assert_close(settled.activation_probability, gamma)


def test_gaussian_around_the_encoding_measures_its_width_in_levels() -> None:
    level = TrackedLevel(0.5, target=2.0)
    head, h = GaussianAround(3, level, ratio=0.2), torch.randn(5, 3)
    sampled, settled = head(h)
    assert torch.equal(settled.loc, h)
    torch.testing.assert_close(sampled.scale, torch.full((5, 3), 0.1))
    with torch.no_grad():
        level.value.mul_(3)
    torch.testing.assert_close(head(h).settled.scale, torch.full((5, 3), 0.3))
    assert [name for name, _ in head.named_parameters()] == ["log_ratio"], "the level belongs to the threshold"


@pytest.mark.parametrize("build", [GaussianPosterior, LaplacePosterior, SpikeSlabPosterior])
@pytest.mark.parametrize("output", [-1000.0, 1000.0])
def test_wild_heads_stay_finite(build: type[nn.Module], output: float) -> None:
    head = build(4, 3)
    with torch.no_grad():
        for layer in head.children():
            layer.bias.fill_(output)
    law = head(torch.zeros(1, 4)).sampled
    law = getattr(law, "slab", law)
    law.scale.sum().backward()
    assert law.scale.isfinite().all()
    assert (law.scale > 0).all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in head.parameters())
