"""The backbones: shapes and layer sizes."""

import torch
from torch import nn

from softspike.encoder import LinearEncoder, MLPEncoder


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
