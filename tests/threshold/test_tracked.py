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
        (weight * level.value.square() + level.observe(*count(level.value))).backward()
        level.steer(step)


@pytest.mark.parametrize("start", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("target", [2.0, 10.0, 30.0])
def test_count_settles_at_the_target(start: float, target: float) -> None:
    level = TrackedLevel(start, target)
    settle(level, weight=-0.5)
    assert float(count(level.value.detach())[0]) == pytest.approx(target, rel=1e-3)
    assert float(level.value.detach()) > 0


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_price_is_the_multiplier_of_the_constraint(weight: float) -> None:
    """ρ = −(∂L/∂λ)/(∂G/∂λ) at G(λ) = k: what one more active component is worth."""
    level = TrackedLevel(1.0, target=10.0)
    settle(level, weight)
    value = level.value.detach()
    assert float(level.price) == pytest.approx(float(-2 * weight * value / count(value)[1]), rel=1e-3, abs=1e-6)


def test_price_is_never_negative_and_steps_are_bounded() -> None:
    """A loss that falls with λ gives the price 0; λ moves by 10 % at most; without a gradient nothing moves."""
    level = TrackedLevel(1.0, target=39.0)
    before = level.value.detach().clone()
    level.steer(0)
    assert torch.equal(level.value, before)
    settle(level, weight=-5.0, n_steps=1)
    assert level.price == 0
    assert abs(float((level.value.detach() / before).log())) <= 0.1 + 1e-6
    assert level.value.grad is None
