"""The straightforward loop that deep models are timed against does the same arithmetic."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.deep import NETS, measure, sides
from benchmarks.deep_bare import Bare, copy_weights

from softspike.methods import ConvNetworks, Plan, build, method_named
from softspike.objective import BestOfPlain
from softspike.train import FullPrecision


@pytest.mark.parametrize("net", ["tiny", "fashion-mnist"])
@pytest.mark.parametrize("n_samples", [1, 3])
def test_the_same_loss_and_gradient(net, n_samples):
    """In training mode, batch statistics over all J·B images on both sides: the library's plain objective."""
    setting = NETS[net]._replace(n_samples=n_samples, n_components=6)
    size, _, channels = setting.image_shape
    plan = Plan(
        size * size * channels, 6, 0.1, 100, 5, n_samples, beta=setting.beta, networks=ConvNetworks(setting.image_shape)
    )
    coder = build(method_named("thresholded-gaussian"), plan, 0).coder.train()
    coder.objective = BestOfPlain(n_samples)
    bare = Bare(setting, torch.device("cpu"), None)
    copy_weights(bare, coder)
    x = torch.rand(5, size, size, channels)
    noise = torch.randn((n_samples, 5, 6), generator=torch.Generator().manual_seed(3))
    theirs = bare.loss(x.permute(0, 3, 1, 2).contiguous(), noise)
    ours = coder.loss(x.reshape(5, -1), 0, torch.Generator().manual_seed(3)).total
    torch.testing.assert_close(theirs, ours, rtol=1e-4, atol=1e-6)
    theirs.backward()
    ours.backward()
    torch.testing.assert_close(bare.location.weight.grad, coder.posterior.location.weight.grad, rtol=1e-3, atol=1e-6)
    last = coder.generator.convolutions[-1].weight.grad
    torch.testing.assert_close(bare.decoder[-2].weight.grad, last, rtol=1e-3, atol=1e-6)


def test_both_sides_run():
    both = sides(NETS["tiny"], 8, torch.device("cpu"), FullPrecision(), n_images=32)
    assert (measure(both, repeats=1, turn=2, device=torch.device("cpu")) > 0).all()
