"""Posterior heads: what they predict, and what warm-ups and temperatures change."""

import pytest
import torch
from torch import nn
from torch.distributions import Laplace, Normal

from softspike.posterior import GaussianPosterior, LaplacePosterior, SpikeSlab, SpikeSlabPosterior, log_of_rate
from softspike.schedule import Exponential, Ramp

HEADS = [GaussianPosterior(4, 3), LaplacePosterior(4, 3), SpikeSlabPosterior(4, 3)]


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_shapes_and_independence_of_the_step(head: nn.Module) -> None:
    h = torch.randn(5, 4)
    for step in (None, 0, 1000):
        sampled, settled = head(h, step)
        assert sampled.batch_shape == settled.batch_shape == (5, 3)
        torch.testing.assert_close(sampled.mean, settled.mean)
        torch.testing.assert_close(sampled.variance, settled.variance)


def test_gaussian_head_predicts_log_variance() -> None:
    head, h = HEADS[0], torch.randn(5, 4)
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


def test_published_reading_of_the_spike() -> None:
    """Feeding log γ where logit γ belongs gives the rate γ/(1 + γ); the divergence is still paid at γ."""
    head, h = SpikeSlabPosterior(4, 3, read_spike=log_of_rate), torch.randn(5, 4)
    gamma = torch.sigmoid(head.spike(h))
    sampled, settled = head(h)
    torch.testing.assert_close(sampled.activation_probability, gamma / (1 + gamma))
    torch.testing.assert_close(settled.activation_probability, gamma)
