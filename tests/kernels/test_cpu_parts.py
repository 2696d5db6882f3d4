"""Parts of compiled loops on a CPU equal what torch and numpy make of the same numbers."""

import numpy as np
import pytest
import torch

pytest.importorskip("numba", reason="compiled code needs numba")

from softspike.kernels.compiled import kernel
from softspike.kernels.cpu.bfloat16 import lowered, raised
from softspike.kernels.cpu.descent import descend_
from softspike.kernels.cpu.relu import relu_back_
from softspike.kernels.cpu.tiles import PAIRS
from softspike.kernels.cpu.vectors import misfit, places_of

SIZES = [1, 15, 63, 64, 65, 200, 256]


@kernel
def _there_and_back(values, low, high):
    for i in range(len(values)):
        low[i] = lowered(values[i])
        high[i] = raised(low[i])


@kernel
def _places(z, places):
    return places_of(z, places)


@kernel
def _misfit(x, rows, places, values, n, rest):
    return misfit(x, rows, places, values, n, rest)


def test_bfloat16_rounds_as_torch_does():
    """Numbers of every exponent, ties, infinities, the largest number, and none."""
    random = torch.Generator().manual_seed(0)
    bits = torch.randint(-(2**31), 2**31, (20_000,), generator=random).to(torch.int32)
    ties = ((bits >> 16) << 16) | 0x8000
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3.4028235e38, 1e-45])
    values = torch.cat([bits.view(torch.float32), ties.view(torch.float32), odd])
    low, high = np.empty(len(values), np.uint16), np.empty(len(values), np.float32)
    _there_and_back(values.numpy(), low, high)
    expected = values.bfloat16()
    torch.testing.assert_close(torch.from_numpy(high), expected.float(), rtol=0, atol=0, equal_nan=True)
    some = ~values.isnan()
    assert torch.equal(torch.from_numpy(low.view(np.int16))[some], expected.view(torch.int16)[some])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_places_are_where_it_is_not_0(size, share):
    random = np.random.default_rng(size)
    z = np.where(random.random(size) < share, random.standard_normal(size), 0.0).astype(np.float32)
    places = np.full(size + 1, -7, np.int32)
    n = _places(z, places)
    assert places[:n].tolist() == np.flatnonzero(z).tolist()


@pytest.mark.parametrize("n_features", SIZES)
@pytest.mark.parametrize("n", [0, 1, 9])
def test_the_misfit_of_some_rows(n_features, n):
    """Against numpy in float64, to 1e-5 of its size."""
    random = np.random.default_rng(n_features + n)
    rows, x = (random.standard_normal(shape).astype(np.float32) for shape in ((20, n_features), n_features))
    places, values = random.permutation(20)[:10].astype(np.int32), random.standard_normal(10).astype(np.float32)
    rest = np.empty(n_features, np.float32)
    error = _misfit(x, rows, places, values, n, rest)
    expected = x.astype(float) - values[:n].astype(float) @ rows[places[:n]].astype(float)
    np.testing.assert_allclose(rest, expected, atol=1e-5)
    np.testing.assert_allclose(error, (expected**2).sum(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1), (7, 33), (100, 256), (3, 1000)])
def test_backwards_through_a_relu(dtype, shape):
    """The same bits as torch's; the sums, in float32, to rounding."""
    random = torch.Generator().manual_seed(shape[1])
    grad, hidden = torch.randn(shape, generator=random).to(dtype), torch.randn(shape, generator=random).relu().to(dtype)
    hidden[0, 0] = -0.0
    expected, by_bias = torch.ops.aten.threshold_backward(grad, hidden, 0), torch.empty(shape[1])
    relu_back_(grad, hidden, by_bias)
    assert torch.equal(grad, expected)
    torch.testing.assert_close(by_bias, expected.float().sum(0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("low", [False, pytest.param(True, marks=pytest.mark.skipif(not PAIRS, reason="no pairs"))])
@pytest.mark.parametrize(("kept", "nesterov"), [(0.9, True), (0.9, False), (0.0, False)])
@pytest.mark.parametrize("decay", [0.0, 0.01])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (8, 32), (9, 31), (16, 65), (300, 70)])
@pytest.mark.parametrize("n_rows", [1, 7, 100])
def test_a_descent_is_that_of_sgd(low, kept, nesterov, decay, shape, n_rows):
    """Three steps of torch's SGD along gᵀx, to 1e-5: whole tiles and what is at the edges, odd batches, in float32 and
    of numbers in bfloat16, whose products and sums are float32 all the same. The copy is the weight as torch rounds
    it."""
    random = torch.Generator().manual_seed(1)
    weight, dtype = torch.randn(shape, generator=random), torch.bfloat16 if low else torch.float32
    copy, momentum = weight.to(torch.bfloat16) if low else None, torch.zeros(shape) if kept else None
    plain = torch.nn.Parameter(weight.clone())
    optimizer = torch.optim.SGD([plain], lr=0.1, momentum=kept, nesterov=nesterov, weight_decay=decay)
    for _ in range(3):
        grad, inputs = (torch.randn(n_rows, n, generator=random).div(n_rows**0.5).to(dtype) for n in shape)
        plain.grad = (grad.double().T @ inputs.double()).float()
        optimizer.step()
        descend_(weight, momentum, grad, inputs, copy, rate=0.1, decay=decay, kept=kept, nesterov=nesterov)
    torch.testing.assert_close(weight, plain.detach(), rtol=1e-5, atol=1e-5)
    if momentum is not None:
        torch.testing.assert_close(momentum, optimizer.state[plain]["momentum_buffer"], rtol=1e-5, atol=1e-5)
    if copy is not None:
        assert torch.equal(copy, weight.bfloat16())


@pytest.mark.skipif(not PAIRS, reason="no pairs")
def test_copies_of_numbers_that_are_none_and_of_infinite_ones():
    weight = torch.tensor([[torch.nan, torch.inf, -torch.inf, 3.4028235e38]])
    copy, nothing = torch.zeros(1, 4, dtype=torch.bfloat16), torch.zeros(1, 1, dtype=torch.bfloat16)
    none = torch.zeros(1, 4, dtype=torch.bfloat16)
    descend_(weight, None, nothing, none, copy, rate=0.0, decay=0.0, kept=0.0, nesterov=False)
    torch.testing.assert_close(copy, weight.bfloat16(), rtol=0, atol=0, equal_nan=True)
