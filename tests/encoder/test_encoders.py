"""The backbones: shapes and layer sizes."""

import pytest
import torch
from torch import nn

from softspike.encoder import LinearEncoder, MLPEncoder, UnrolledEncoder
from softspike.generator import Dictionary
from softspike.threshold import FixedLevel


def test_linear_encoder_is_the_identity() -> None:
    encoder, x = LinearEncoder(6), torch.randn(4, 6)
    assert torch.equal(encoder(x), x)
    assert encoder.width == 6
    assert not list(encoder.parameters())


def test_mlp_has_the_layers_of_the_paper() -> None:
    """256 → 512 → 1024 → 512 → 256, ReLU after each."""
    encoder = MLPEncoder(256)
    affine = [layer for layer in encoder.layers if isinstance(layer, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in affine] == [
        (256, 512), (512, 1024), (1024, 512), (512, 256)
    ]  # fmt: skip
    assert [type(layer) for layer in encoder.layers] == [nn.Linear, nn.ReLU] * 4
    assert encoder.width == 256
    h = encoder(torch.randn(3, 256))
    assert h.shape == (3, 256)
    assert (h >= 0).all()
    assert (h > 0).any()


def test_mlp_of_other_widths() -> None:
    encoder = MLPEncoder(6, widths=(5, 7))
    assert encoder(torch.randn(4, 6)).shape == (4, 7)
    assert encoder.width == 7


@pytest.mark.parametrize("n_components", [4, 30], ids=["Gram form", "wide form"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("rate", [0.4, 3.0], ids=["short steps", "long steps"])
def test_unrolled_encoder_is_its_formula(n_components: int, positive: bool, rate: float) -> None:
    """Both ways to multiply give the iteration of the docstring, to 1e-10 in float64."""
    generator, level = Dictionary(6, n_components).double(), FixedLevel(0.3).double()
    encoder = UnrolledEncoder(generator, level, n_steps=3, rate=rate, positive=positive).double()
    with torch.no_grad():
        for p in encoder.parameters():
            p.add_(0.1 * torch.randn_like(p))
    x, atoms = torch.randn(5, 6, dtype=torch.float64), generator.atoms
    rates = encoder.log_rate.exp()
    z, location, shortened = torch.zeros(5, n_components, dtype=torch.float64), rates[0] * (x @ atoms), 0
    for k in range(3):
        size = location if positive else location.abs()
        gate = torch.sigmoid((size / level.value - encoder.log_level[k].exp()) / encoder.log_width[k].exp())
        path, residual = location * gate - z, x - z @ atoms.T
        image = path @ atoms.T
        length = (2 * (residual * image).sum(-1) / image.square().sum(-1)).clamp(0, 1)[:, None]
        shortened += int((length < 1).sum())
        z = z + length * path
        location = z + rates[k + 1] * (x - z @ atoms.T) @ atoms
    assert rate < 1 or shortened > 0
    torch.testing.assert_close(encoder(x), location, rtol=1e-10, atol=1e-10)
    assert encoder.width == n_components


@pytest.mark.parametrize("n_components", [4, 30, 200])
@torch.no_grad()
def test_unrolled_encoder_never_diverges(n_components: int) -> None:
    """Coherent atoms and rates far too long: the location stays within one step of a z no worse than z = 0."""
    generator = Dictionary(6, n_components).double()
    generator.weight.copy_(generator.weight + 3 * torch.randn(6, 1, dtype=torch.float64))
    x, rate = torch.randn(50, 6, dtype=torch.float64), 3.0
    bound = 0.0
    for depth in (1, 5, 40):
        encoder = UnrolledEncoder(generator, FixedLevel(0.3).double(), n_steps=depth, rate=rate).double()
        largest = float(encoder(x).norm(dim=-1).max())
        bound = bound or 20 * largest
        assert largest < bound


def test_unrolled_encoder_has_finite_gradients_at_zero() -> None:
    encoder = UnrolledEncoder(Dictionary(6, 9), FixedLevel(0.3), n_steps=3, rate=0.4)
    x = torch.zeros(5, 6, requires_grad=True)
    encoder(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in encoder.parameters())


def test_unrolled_encoder_owns_its_steps_only() -> None:
    """3K + 1 numbers; the dictionary is the model's, and receives gradients all the same."""
    generator = Dictionary(6, 9)
    encoder = UnrolledEncoder(generator, FixedLevel(0.3), n_steps=3, rate=0.4)
    assert sum(p.numel() for p in encoder.parameters()) == 3 * 3 + 1
    encoder(torch.randn(5, 6)).square().sum().backward()
    assert generator.weight.grad.abs().max() > 0
    assert all(p.grad.isfinite().all() for p in encoder.parameters())
