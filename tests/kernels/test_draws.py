"""Inside a kernel: the same draws as the plain functions, and special functions as torch's."""

import pytest
import torch

pytest.importorskip("triton", reason="kernels need Triton")
import triton
import triton.language as tl

from softspike.kernels import counter, draws, special

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KEY, GROUP, STEP = 98_765_432_101_234, 3, 77
ELEMENT = torch.arange(512).reshape(16, 32)


@triton.jit
def _noise_kernel(out, alpha, key, KIND: tl.constexpr):
    element = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    seed, group, step = tl.load(key), tl.full((), 3, tl.int32), tl.full((), 77, tl.int32)
    if KIND == 0:
        a, b, c, d = draws.base_noise(seed, element, group, step, False)
    elif KIND == 1:
        a, b, c, d = draws.base_noise(seed, element, group, step, True)
    elif KIND == 2:
        a, b, c, d = draws.spike_noise(seed, element, group, step)
    else:
        a, b, c, d = draws.gamma_noise(seed, tl.load(alpha + element), element, group, step)
    tl.store(out + element, a)
    tl.store(out + 512 + element, b)
    tl.store(out + 1024 + element, c)
    tl.store(out + 1536 + element, d)


def plainly(kind, alpha):
    if kind == 3:
        return counter.standard_gamma(KEY, alpha, ELEMENT, GROUP, STEP)
    stream = counter.SPIKE if kind == 2 else counter.BASE
    a, b, c, d = (counter.unit(word) for word in counter.philox(KEY, ELEMENT, GROUP, STEP, stream))
    if kind == 0:
        return [*counter.normal_noise(a, b), *counter.normal_noise(c, d)]
    return [(counter.laplace_noise if kind == 1 else torch.logit)(u) for u in (a, b, c, d)]


@pytest.mark.parametrize("kind", range(4), ids=["normal", "Laplace", "logistic", "Gamma"])
def test_draws_equal_the_plain_ones(kind):
    alpha = torch.exp(1.5 * torch.randn(16, 32, generator=torch.Generator().manual_seed(0)))
    out = torch.full((4, 16, 32), float("nan"), device=DEVICE)
    _noise_kernel[(1,)](out, alpha.to(DEVICE), torch.tensor([KEY], device=DEVICE), KIND=kind)
    # Sines and logarithms differ in their last bits.
    torch.testing.assert_close(out.cpu(), torch.stack(plainly(kind, alpha)), rtol=2e-5, atol=2e-6)


@triton.jit
def _special_kernel(out, x, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    tl.store(out + i, special.log_gamma(value))
    tl.store(out + N + i, special.digamma(value))
    tl.store(out + 2 * N + i, special.trigamma(value))


def test_special_functions_equal_torchs():
    x = torch.logspace(-6, 6, 256)
    out = torch.empty(3, 256, device=DEVICE)
    _special_kernel[(1,)](out, x.to(DEVICE), N=256)
    exact = x.double()
    wanted = torch.stack([torch.lgamma(exact), torch.digamma(exact), torch.polygamma(1, exact)])
    torch.testing.assert_close(out.cpu().double(), wanted, rtol=2e-5, atol=2e-6)
