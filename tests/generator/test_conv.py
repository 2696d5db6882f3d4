"""Convolutional encoders and generators: the paper's tables, other sizes, batch norm with a winner-only gradient."""

import pytest
import torch
from torch import nn

from softspike.encoder import ConvEncoder
from softspike.generator import ConvGenerator
from softspike.model import VariationalCoder
from softspike.objective import BestOf, BestOfPlain
from softspike.posterior import GaussianPosterior
from softspike.prior import NormalPrior
from softspike.threshold import FixedLevel, GammaLevel, ShiftedSoft, Threshold

# (channels, kernel, stride, pad) of the paper's appendix, its last 28×28 encoder layer corrected
ENCODERS = {
    (28, 28, 1): [(64, 4, 2, 1), (64, 4, 2, 1), (128, 4, 1, 0), (128, 4, 2, 0)],
    (64, 64, 3): [(64, 4, 2, 1), (64, 4, 2, 1), (128, 4, 2, 1), (256, 4, 2, 1), (256, 4, 2, 0)],
}
GENERATORS = {
    (28, 28, 1): [(128, 4, 2, 0), (64, 4, 1, 0), (64, 4, 2, 1), (1, 4, 2, 1)],
    (64, 64, 3): [(128, 4, 2, 1), (128, 4, 2, 1), (64, 4, 2, 1), (64, 4, 2, 1), (3, 4, 2, 1)],
}
AFFINE = {(28, 28, 1): 128, (64, 64, 3): 1024}
SIZES = [(8, 8), (14, 14), (16, 16, 3), (20, 20), (24, 24, 2), (32, 32, 3), (48, 48)]


def described(network):
    kinds = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)]
    return [(c.out_channels, c.kernel_size[0], c.stride[0], c.padding[0]) for c in kinds]


@pytest.mark.parametrize("shape", ENCODERS)
def test_the_papers_tables(shape):
    encoder, generator = ConvEncoder(shape), ConvGenerator(shape, 20)
    assert described(encoder) == ENCODERS[shape]
    assert described(generator) == GENERATORS[shape]
    assert generator.affine.out_features == AFFINE[shape]
    norms = [layer.num_features for layer in encoder.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert norms == [channels for channels, *_ in ENCODERS[shape]]
    norms = [layer.num_features for layer in generator.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert norms == [channels for channels, *_ in GENERATORS[shape][:-1]]


@pytest.mark.parametrize("shape", [*ENCODERS, *SIZES])
def test_shapes_in_and_out(shape):
    encoder, generator = ConvEncoder(shape), ConvGenerator(shape, 6)
    n_features = shape[0] * shape[1] * (shape[2] if len(shape) == 3 else 1)
    assert (generator.n_features, generator.n_components) == (n_features, 6)
    for mode in (True, False):
        encoder.train(mode)
        generator.train(mode)
        assert encoder(torch.rand(3, n_features)).shape == (3, encoder.width)
        for leading in [(3,), (2, 3), (2, 1, 3)]:
            x = generator(torch.randn(*leading, 6))
            assert x.shape == (*leading, n_features)
            assert bool(((x >= 0) & (x <= 1)).all())


def test_memory_is_channels_last():
    """Rows are channels-last images already, and no layer rearranges them."""
    encoder, generator = ConvEncoder((16, 16, 3)), ConvGenerator((16, 16, 3), 4)
    for layer in (*encoder.layers, *generator.convolutions):
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            assert layer.weight.is_contiguous(memory_format=torch.channels_last)
            layer.register_forward_hook(
                lambda _, given, out: check(given[0].is_contiguous(memory_format=torch.channels_last), out)
            )
    encoder(generator(torch.randn(5, 4)))


def check(held, out):
    assert held
    return out


def coder(objective, gamma=False):
    torch.manual_seed(0)
    encoder = ConvEncoder((8, 8, 1))
    level = GammaLevel(encoder.width, 5, 0.3) if gamma else FixedLevel(0.3)
    return VariationalCoder(
        encoder, GaussianPosterior(encoder.width, 5), NormalPrior(0.1), ConvGenerator((8, 8, 1), 5), objective,
        Threshold(ShiftedSoft, level),
    )  # fmt: skip


def gradients(model, x):
    loss = model.loss(x, 0, torch.Generator().manual_seed(3))
    loss.total.backward()
    return loss, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("gamma", [False, True])
def test_with_settled_statistics_the_winner_only_gradient_is_the_plain_one(gamma):
    x = torch.rand(9, 64)
    fast, plain = coder(BestOf(7), gamma), coder(BestOfPlain(7), gamma)
    for model in (fast, plain):
        for _ in range(3):  # running statistics that are no longer 0 and 1
            model.loss(x, 0, torch.Generator().manual_seed(1))
        model.load_state_dict(fast.state_dict())
        model.eval()
    (one, its), (other, theirs) = gradients(fast, x), gradients(plain, x)
    torch.testing.assert_close(tuple(one), tuple(other), rtol=1e-5, atol=1e-6)
    assert its.keys() == theirs.keys()
    for name, gradient in its.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-3, atol=1e-6)


def test_scoring_leaves_no_trace():
    """Only the winners are in the statistics: J changes which codes win, not how many batches were seen."""
    x, model = torch.rand(9, 64), coder(BestOf(7))
    seen = []
    model.generator.register_forward_hook(lambda _, given, out: seen.append(given[0].shape))
    model.loss(x, 0, torch.Generator().manual_seed(3))
    assert seen == [(1, 9, 5)]
    for norm in model.generator.norms:
        assert int(norm.num_batches_tracked) == 1


def test_a_preview_judges_each_code_for_itself():
    model = coder(BestOf(2)).generator
    model(torch.randn(20, 5))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    z = torch.randn(4, 3, 5)
    whole = model.preview(z)
    assert not whole.requires_grad
    torch.testing.assert_close(model.preview(z[:1, :2]), whole[:1, :2], rtol=1e-5, atol=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    torch.testing.assert_close(whole, model.eval()(z), rtol=1e-5, atol=1e-6)


def test_one_image_is_no_batch():
    with pytest.raises(ValueError, match="batch holds 1 image, expected at least 2"):
        ConvEncoder((8, 8))(torch.rand(1, 64))
    assert ConvEncoder((8, 8)).eval()(torch.rand(1, 64)).shape == (1, 64)
