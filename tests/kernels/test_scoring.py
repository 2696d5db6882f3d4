"""The kernels that score samples equal the plain layers; on a CPU through Triton's interpreter."""

import pytest
import torch

pytest.importorskip("triton", reason="CPU builds of torch do not bring Triton; pip install triton")

from softspike.generator import ConvGenerator
from softspike.kernels.scoring import affine_relu_, squared_errors
from softspike.layers import BatchNorm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5, 4, 4), (2, 64, 7, 7), (1, 3, 1, 1)])
def test_affine_relu_is_settled_batch_norm_and_relu(shape, dtype):
    norm = BatchNorm(shape[1]).to(DEVICE)
    with torch.no_grad():
        for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            tensor.uniform_(0.2, 1.5)
    x = torch.randn(shape, device=DEVICE).to(dtype).contiguous(memory_format=torch.channels_last)
    wanted = norm.settled(x.float()).relu()
    found = norm.settled_relu_(x)
    assert found.data_ptr() == x.data_ptr()
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2  # eight bits
    torch.testing.assert_close(found.float(), wanted, rtol=tolerance, atol=tolerance)


def test_other_memory_is_refused():
    with pytest.raises(ValueError, match="expected channels-last memory"):
        affine_relu_(torch.zeros(2, 3, 4, 4, device=DEVICE), torch.ones(3), torch.ones(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(4, 3, 784), (2, 5, 1500), (1, 1, 7)])
def test_squared_errors_are_those_of_the_sigmoid(shape, dtype):
    x, logits = torch.rand(shape[1:], device=DEVICE), 2 * torch.randn(shape, device=DEVICE).to(dtype)
    wanted = (x - logits.float().sigmoid()).square().mean(-1)
    torch.testing.assert_close(squared_errors(x, logits), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("image_shape", [(8, 8, 3), (28, 28)])
def test_scores_through_kernels_are_the_plain_ones(image_shape):
    """The whole road of a GPU, on whatever is here."""
    torch.manual_seed(0)
    generator = ConvGenerator(image_shape, 6).to(DEVICE)
    generator(torch.randn(20, 6, device=DEVICE))  # statistics that are no longer 0 and 1
    x, z = torch.rand(4, generator.n_features, device=DEVICE), torch.randn(3, 4, 6, device=DEVICE)
    before = {name: value.clone() for name, value in generator.state_dict().items()}
    plain = (x - generator.preview(z)).square().mean(-1)
    with torch.no_grad():
        fused = squared_errors(x, generator._preview_logits(z, fused=True))
    torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(generator.errors(x, z), plain, rtol=1e-4, atol=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in generator.state_dict().items())
