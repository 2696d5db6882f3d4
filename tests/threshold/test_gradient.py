"""Gradients through the threshold: three backward passes under one forward pass."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Laplace, Normal

from softspike.posterior import noise, place
from softspike.threshold import (
    CentredSoft,
    DoubledStraightThrough,
    Hard,
    PositiveHard,
    ShiftedSoft,
    StraightThrough,
    Subgradient,
    ThresholdGradient,
)

GRADIENTS = [StraightThrough(), DoubledStraightThrough(), Subgradient()]
every_gradient = pytest.mark.parametrize("gradient", GRADIENTS, ids=lambda g: type(g).__name__)
every_base = pytest.mark.parametrize("base", [Normal, Laplace])
every_law = pytest.mark.parametrize("law", [ShiftedSoft, CentredSoft, Hard, PositiveHard])


class Draw:
    """(J, B, d) draws with leaves μ, scale (B, d) and λ (J, B, d), so that each draw has its own derivative to λ."""

    def __init__(self, gradient: ThresholdGradient, law: type, base: type):
        random = torch.Generator().manual_seed(1)
        self.loc = torch.randn(1, 1000, generator=random).requires_grad_()
        self.scale = (torch.rand(1, 1000, generator=random) + 0.1).requires_grad_()
        self.level = (0.5 * torch.rand(1, 1, 1000, generator=random)).requires_grad_()
        q = base(self.loc, self.scale)
        self.noise = noise(q, 1, random)
        self.s = place(q, self.noise)
        self.law = law(q, self.level)
        self.z = gradient(self.law, self.s)
        self.active = self.z[0] != 0

    def slope(self, leaf: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(self.z.sum(), leaf, retain_graph=True)
        return grad.reshape(1, 1000)


@every_base
@every_law
@every_gradient
def test_forward_is_the_threshold_bit_for_bit(gradient: ThresholdGradient, law: type, base: type) -> None:
    draw = Draw(gradient, law, base)
    assert torch.equal(draw.z, draw.law.transform(draw.s))
    assert 100 < int(draw.active.sum()) < 900
    compared = draw.s - draw.loc if law is ShiftedSoft else draw.s
    size = compared if law is PositiveHard else compared.abs()
    assert torch.equal(draw.z == 0, size <= draw.level), "zeros must be exact, and only where |r| ≤ λ"


@every_base
@every_law
def test_slope_to_location(law: type, base: type) -> None:
    """dz/dμ on every element: 1; 2 on active and 1 on silent; 1 on active and 0 on silent."""
    for gradient, on, off in zip(GRADIENTS, (1.0, 2.0, 1.0), (1.0, 1.0, 0.0), strict=True):
        draw = Draw(gradient, law, base)
        assert torch.equal(draw.slope(draw.loc), torch.where(draw.active, on, off)), type(gradient).__name__


@every_base
@every_gradient
def test_slope_to_level(gradient: ThresholdGradient, base: type) -> None:
    """dz/dλ on active units: −sign(noise) for the shifted law, −sign(s) for the centred, 0 for the hard; else 0."""
    shifted, centred, hard = (Draw(gradient, law, base) for law in (ShiftedSoft, CentredSoft, Hard))
    assert torch.equal(shifted.slope(shifted.level), torch.where(shifted.active, -shifted.noise[0].sign(), 0.0))
    assert torch.equal(centred.slope(centred.level), torch.where(centred.active, -centred.s[0].sign(), 0.0))
    (slope,) = torch.autograd.grad(hard.z.sum(), hard.level, allow_unused=True)
    assert slope is None or not slope.any()


@every_base
@every_law
def test_slope_to_scale(law: type, base: type) -> None:
    """dz/dscale is the noise, everywhere for the straight-through gradients and on active units for the true one."""
    for gradient in GRADIENTS:
        draw = Draw(gradient, law, base)
        kept = draw.active if isinstance(gradient, Subgradient) else torch.ones_like(draw.active)
        torch.testing.assert_close(draw.slope(draw.scale), draw.noise[0] * kept)
