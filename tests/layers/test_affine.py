"""Affine layers in one pass equal the layers one by one."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from softspike.layers import affine_relu, affine_relu_plainly
from softspike.layers.affine import fast

SHAPES = [(100, (256, 512, 64)), (1, (1, 1)), (7, (5, 13, 3, 9)), (33, (70, 8))]


@pytest.mark.parametrize(("n_rows", "widths"), SHAPES, ids=str)
@pytest.mark.parametrize("from_data", [True, False], ids=["from data", "from a network"])
def test_equal_to_the_plain_layers(n_rows, widths, from_data):
    """Value and every gradient within 1e-5 of the largest: sums are taken in another order."""
    torch.manual_seed(0)
    layers = [nn.Linear(before, after) for before, after in pairwise(widths)]
    x = torch.randn(n_rows, widths[0], requires_grad=not from_data)
    inputs = [*([] if from_data else [x]), *(part for layer in layers for part in layer.parameters())]
    weights = torch.randn(n_rows, widths[-1])
    assert fast(x)
    results = []
    for way in (affine_relu, affine_relu_plainly):
        out = way(x, layers)
        results.append([out.detach(), *torch.autograd.grad((out * weights).sum(), inputs)])
    for found, plain in zip(*results, strict=True):
        torch.testing.assert_close(found, plain, rtol=1e-5, atol=1e-5 * max(float(plain.abs().max()), 1e-3))


@pytest.mark.parametrize("case", ["float64", "autocast", "images", "vmap"])
def test_other_batches_go_the_plain_way(case):
    layers = [nn.Linear(6, 4)]
    x = torch.randn(3, 6)
    if case == "float64":
        layers[0].double()
        assert affine_relu(x.double(), layers).dtype == torch.float64
    elif case == "autocast":
        with torch.autocast("cpu", torch.bfloat16):
            assert affine_relu(x, layers).dtype == torch.bfloat16
    elif case == "images":
        assert affine_relu(x[None], layers).shape == (1, 3, 4)
    else:
        together = torch.func.vmap(lambda row: affine_relu(row, layers))(torch.stack([x, -x]))
        torch.testing.assert_close(together[1], affine_relu(-x, layers))
