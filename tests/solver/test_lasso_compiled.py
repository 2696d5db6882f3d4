"""The compiled lasso, forced onto small problems, against scikit-learn's certificate and the plain road."""

import sys

import pytest
import torch
from torch import Tensor

from softspike.kernels.compiled import available
from softspike.solver import fista, lasso, lasso_gap

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
both_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
both_signs = pytest.mark.parametrize("positive", [False, True])
DICTIONARIES = {
    "square": lambda: torch.randn(16, 16),
    "narrow": lambda: torch.randn(20, 6),
    "wide": lambda: torch.randn(10, 300),
    "one atom": lambda: torch.randn(10, 1),
    "atoms of zeros": lambda: torch.randn(16, 30) * (torch.arange(30) % 4 != 0),
    "twins": lambda: torch.randn(16, 20).repeat(1, 2),
    "lengths from 0.01 to 100": lambda: torch.randn(16, 30) * torch.logspace(-2, 2, 30),
    "nearly one direction": lambda: 0.3 * torch.randn(16, 30) + torch.randn(16, 1),
}


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["softspike.solver.lasso"], "_WORTH_IT", 1)  # the package's `lasso` is the function


def problem(name: str, dtype: torch.dtype, n: int = 40) -> tuple[Tensor, Tensor, Tensor]:
    atoms = DICTIONARIES[name]().to(dtype)
    x = torch.randn(n, len(atoms), dtype=dtype)
    x[3] = 0
    return x, atoms, 0.1 * (x @ atoms).abs().amax(-1).clamp_min(1e-3)  # a tenth of where codes become 0


def objective(x: Tensor, atoms: Tensor, codes: Tensor, penalty: Tensor) -> Tensor:
    return 0.5 * (x - codes @ atoms.T).square().sum(-1) + penalty * codes.abs().sum(-1)


@both_types
@both_signs
@pytest.mark.parametrize("name", DICTIONARIES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_every_sample_is_certified(name: str, positive: bool, dtype: torch.dtype, tolerance: float) -> None:
    """The gap is below the tolerance, is what is reported (to 1e-5), and the objective within it of FISTA's."""
    x, atoms, penalty = problem(name, dtype)
    codes, gap, _ = lasso(x, atoms, penalty, tolerance=tolerance, positive=positive, max_iterations=4000)
    half = 0.5 * x.square().sum(-1)
    assert (gap <= tolerance).all()
    found = lasso_gap(*(value.double() for value in (x, atoms, codes, penalty)), positive) / half.clamp_min(1e-9)
    torch.testing.assert_close(found, gap.double(), rtol=0, atol=1e-5)
    best = fista(x, atoms, penalty, tolerance=1e-5, positive=positive, max_iterations=4000).codes
    excess = objective(x, atoms, codes, penalty) - objective(x, atoms, best, penalty)
    assert (excess <= (tolerance + 1e-4) * half + 1e-6).all()
    assert not codes[3].any()
    assert (codes == 0).any() or name == "one atom"
    assert not positive or (codes >= 0).all()


@both_signs
@pytest.mark.parametrize("name", ["square", "wide"])
def test_solution_is_the_plain_one(name: str, positive: bool) -> None:
    """To 1e-6 in float64 at a gap of 1e-13, from nothing and from anywhere; the start is not changed."""
    x, atoms, penalty = problem(name, torch.float64, n=8)
    options = {"tolerance": 1e-13, "max_iterations": 50_000, "positive": positive}
    expected = fista(x, atoms, penalty, **options).codes
    torch.testing.assert_close(lasso(x, atoms, penalty, **options).codes, expected, rtol=0, atol=1e-6)
    start = torch.randn_like(expected).abs()
    kept = start.clone()
    warm = lasso(x, atoms, penalty, start=start, **options).codes
    torch.testing.assert_close(warm, expected, rtol=0, atol=1e-6)
    assert torch.equal(start, kept)


def test_what_is_not_finite_is_reported_and_threads_do_not_matter() -> None:
    x, atoms, penalty = problem("wide", torch.float32, n=300)
    x[7, 2] = torch.nan
    threads = torch.get_num_threads()
    try:
        found = []
        for n in (1, 3):
            torch.set_num_threads(n)
            found.append(lasso(x, atoms, penalty))
    finally:
        torch.set_num_threads(threads)
    others = torch.arange(300) != 7
    assert found[0].gap[7].isnan()
    assert torch.equal(found[0].codes[others], found[1].codes[others])
    assert (found[0].gap[others] <= 1e-3).all()
