"""Weights and their bfloat16 copies move in one pass as torch's SGD moves them in three."""

import pytest
import torch
from torch.optim import SGD

pytest.importorskip("numba", reason="the pass is compiled")

from softspike.kernels.cpu.momentum import momentum_step_


@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (64, 100)])
@pytest.mark.parametrize("options", [
    {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1},
], ids=["momentum", "Nesterov", "decay"])  # fmt: skip
def test_it_is_torchs_step(shape, options):
    """Four steps with the same gradients, to 1e-6; the copy is the rounded weight, bit for bit."""
    random = torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(shape, generator=random))
    own, velocity, copy = weight.detach().clone(), torch.zeros(shape), torch.empty(shape, dtype=torch.bfloat16)
    optimizer = SGD([weight], lr=0.1, **options)
    for _ in range(4):
        grad = torch.randn(shape, generator=random).bfloat16()
        weight.grad = grad.float()
        optimizer.step()
        decay, nesterov = options.get("weight_decay", 0.0), options.get("nesterov", False)
        momentum_step_(own, velocity, grad, copy, 0.1, options["momentum"], decay, nesterov)
    torch.testing.assert_close(own, weight.detach(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(velocity, optimizer.state[weight]["momentum_buffer"], rtol=1e-6, atol=1e-6)
    assert torch.equal(copy, own.bfloat16())


def test_rounding_is_to_nearest_and_ties_to_even():
    """Also at the ends: zeros of both signs, the smallest and the largest number, and what is no number."""
    ties = torch.tensor([0x3F808000, 0x3F818000, 0x3F808001, 0x00000001, 0x7F7FFFFF], dtype=torch.int32)
    values = torch.cat([ties.view(torch.float32), -ties.view(torch.float32), torch.tensor([0.0, -0.0, torch.nan])])
    copy = torch.empty(len(values), dtype=torch.bfloat16)
    zero = torch.zeros_like(copy)
    momentum_step_(values.clone(), torch.zeros_like(values), zero, copy, 0.0, 0.5, 0.0, False)
    torch.testing.assert_close(copy, values.bfloat16(), rtol=0, atol=0, equal_nan=True)
