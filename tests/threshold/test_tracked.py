"""The level that keeps the count at its target: where it settles, and the price it asks."""

import pytest
import torch
from torch import Tensor

from softspike.threshold import TrackedLevel

SCALES = torch.linspace(0.5, 2.0, 40)


def count(level: Tensor) -> tuple[Tensor, Tensor]:
    """G(λ) = Σᵢ P(|sᵢ| > λ) for forty normal variables, and its derivative."""
    a = level / SCALES
    return 2 * torch.special.ndtr(-a).sum(), (-2 * torch.exp(-0.5 * a.square()) / (2.5066283 * SCALES)).sum()


def settle(level: TrackedLevel, weight: float, n_steps: int = 400) -> None:
    """Steps of a loss weight·λ² beside the priced count."""
    for step in range(n_steps):
        level.value.grad = None
        (weight * level.value.square() + level.observe(*count(level.value))).backward()
        level.steer(step)


@pytest.mark.parametrize("start", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("target", [2.0, 10.0, 30.0])
def test_count_settles_at_the_target(start: float, target: float) -> None:
    level = TrackedLevel(start, target)
    settle(level, weight=-0.5)
    assert float(count(level.value.detach())[0]) == pytest.approx(target, rel=1e-3)
    assert float(level.value.detach()) > 0


@pytest.mark.parametrize("weight", [-0.3, 0.0, 0.3, 1.0])
def test_price_is_the_multiplier_of_the_constraint(weight: float) -> None:
    """ρ = −(∂L/∂λ)/(∂G/∂λ) at G(λ) = k: what one more active component is worth."""
    level = TrackedLevel(1.0, target=10.0)
    settle(level, weight)
    value = level.value.detach()
    assert float(level.price) == pytest.approx(float(-2 * weight * value / count(value)[1]), rel=1e-3, abs=1e-6)


def test_price_may_be_negative_and_steps_are_bounded() -> None:
    """A loss that falls with λ wants fewer than k: a negative price, from the first step. λ moves by 10 % at most."""
    level = TrackedLevel(1.0, target=39.0)
    before = level.value.detach().clone()
    settle(level, weight=-5.0, n_steps=1)
    assert -20 <= float(level.price) < 0
    assert abs(float((level.value.detach() / before).log())) <= 0.1 + 1e-6


def test_without_a_gradient_nothing_moves() -> None:
    level = TrackedLevel(1.0, target=39.0)
    before = {name: value.clone() for name, value in level.state_dict().items()}
    level.steer(0)
    assert all(torch.equal(value, before[name]) for name, value in level.state_dict().items())


def test_price_holds_still_what_would_race_the_level() -> None:
    """An encoder that gains by silencing components (a gain of g nats each) is held at the target by the price −g.

    L = g·G(c/λ) with a code scale c that the encoder may shrink: at ρ = −g nothing is gained by it, so c stays put.
    """
    level, log_scale = TrackedLevel(1.0, target=10.0), torch.zeros((), requires_grad=True)
    for step in range(600):
        active, slope = count(level.value * torch.exp(-log_scale))
        loss = 2.0 * active + level.observe(active, slope.detach() * float(torch.exp(-log_scale.detach())))
        level.value.grad = None
        loss.backward()
        with torch.no_grad():
            log_scale -= 0.004 * log_scale.grad.clamp(-1, 1)
        log_scale.grad = None
        level.steer(step)
    assert float(level.price) == pytest.approx(-2.0, rel=1e-2)
    assert abs(float(log_scale.detach())) < 0.3
