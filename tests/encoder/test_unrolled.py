"""Properties of the unrolled encoder beyond its formula."""

import pytest
import torch

from softspike.encoder import UnrolledEncoder
from softspike.generator import UnitNormDictionary
from softspike.threshold import FixedLevel


def made(level: float = 0.3, n_steps: int = 3, positive: bool = False) -> tuple[UnitNormDictionary, UnrolledEncoder]:
    torch.manual_seed(1)
    generator = UnitNormDictionary(20, 30).double()
    fixed = FixedLevel(level).double()
    return generator, UnrolledEncoder(generator, fixed, n_steps=n_steps, rate=0.3, positive=positive).double()


@pytest.mark.parametrize("positive", [False, True])
def test_locations_scale_with_the_data_and_the_level(positive: bool) -> None:
    """μ(cx; cλ) = c·μ(x; λ): nothing in the encoder has a unit of its own."""
    x = torch.randn(8, 20, dtype=torch.float64)
    one, seven = (made(level, positive=positive)[1] for level in (0.3, 2.1))
    torch.testing.assert_close(seven(7 * x), 7 * one(x), rtol=1e-6, atol=1e-6)


def test_signed_locations_are_odd() -> None:
    _, encoder = made()
    x = torch.randn(8, 20, dtype=torch.float64)
    torch.testing.assert_close(encoder(-x), -encoder(x))


def test_locations_follow_a_permutation_of_the_atoms() -> None:
    generator, encoder = made()
    x, order = torch.randn(8, 20, dtype=torch.float64), torch.randperm(30)
    before = encoder(x)
    with torch.no_grad():
        generator.weight.copy_(generator.weight[:, order].clone())
    torch.testing.assert_close(encoder(x), before[:, order])


def test_more_steps_find_the_codes_better() -> None:
    """On a known dictionary and 2-sparse codes, untrained: the error of thresholded locations falls with K."""
    errors = []
    for n_steps in (1, 5, 25):
        generator, encoder = made(0.4, n_steps)
        random = torch.Generator().manual_seed(0)
        z = torch.zeros(500, 30, dtype=torch.float64)
        index = torch.rand(500, 30, generator=random).topk(2).indices
        z.scatter_(1, index, 1 + torch.rand(500, 2, generator=random, dtype=torch.float64))
        found = encoder(z @ generator.atoms.T).detach()
        errors.append(float((found * (found.abs() > 0.4) - z).square().sum(-1).mean()))
    assert errors[0] > 2 * errors[1] > 2 * errors[2]
