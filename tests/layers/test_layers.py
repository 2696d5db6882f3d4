"""Rows as images, and batch normalisation that is torch's own unless processes share a batch."""

import numpy as np
import pytest
import torch

from softspike.layers import BatchNorm, ImageShape, as_images, as_rows


@pytest.mark.parametrize(("size", "channels"), [(8, 1), (28, 3)])
def test_rows_are_height_width_channel(size, channels):
    pictures = np.random.default_rng(0).random((5, size, size, channels), dtype=np.float32)
    rows = torch.from_numpy(pictures.reshape(5, -1))
    images = as_images(rows, ImageShape(size, channels))
    np.testing.assert_array_equal(images.numpy(), pictures.transpose(0, 3, 1, 2))
    assert images.data_ptr() == rows.data_ptr()  # views, both ways
    assert as_rows(images).data_ptr() == rows.data_ptr()
    torch.testing.assert_close(as_rows(images), rows, rtol=0, atol=0)
    torch.testing.assert_close(as_rows(images.contiguous()), rows, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((28, 20), "shape .28, 20., expected square ones"),
        ((28,), "expected square ones"),
        ((101, 101, 3), "101×101, expected a size that halves to 4, 5, 6 or 7"),
        ((4, 4), "4×4, expected a size that halves"),
        ((44, 44), "44×44, expected a size"),
    ],
)
def test_sizes_without_layers_are_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        ImageShape.of(shape)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_is_torchs_own(training):
    ours, theirs = BatchNorm(3).train(training), torch.nn.BatchNorm2d(3).train(training)
    for _ in range(3):
        x = torch.randn(6, 3, 4, 4) * 3 + 1
        torch.testing.assert_close(ours(x), theirs(x), rtol=0, atol=0)
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=0, atol=0)


def test_batch_norm_over_one_process_is_the_same():
    """The path of several processes, with a mean over one: equal to torch's to rounding, gradients included."""
    ours, theirs = BatchNorm(3), torch.nn.BatchNorm2d(3)
    ours.mean_over_ranks = lambda moments: moments
    for norm in (ours, theirs):
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5, generator=torch.Generator().manual_seed(1))
    x, direction = torch.randn(6, 3, 4, 4) * 3 + 1, torch.randn(6, 3, 4, 4)
    gradients = []
    for norm in (ours, theirs):
        leaf = x.clone().requires_grad_()
        y = norm(leaf)
        (y * direction).sum().backward()
        gradients.append((y, leaf.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var))
    for mine, its in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5)
    assert int(ours.num_batches_tracked) == 1


def test_settled_changes_nothing_and_is_what_evaluation_gives():
    norm = BatchNorm(3)
    norm(torch.randn(6, 3, 4, 4) * 3 + 1)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    x = torch.randn(2, 3, 4, 4)
    settled = norm.settled(x)
    assert norm.training
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    torch.testing.assert_close(settled, norm.eval()(x), rtol=0, atol=0)
