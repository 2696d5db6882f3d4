"""FISTA against scikit-learn, its certificate, and its stop sample by sample."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from torch import Tensor

from softspike.solver import fista, lasso_gap

SHAPES = [(8, 8), (8, 20), (20, 8), (6, 60)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def problem(
    n_features: int, n_components: int, n: int = 6, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    atoms = torch.randn(n_features, n_components, dtype=dtype)
    return torch.randn(n, n_features, dtype=dtype), atoms / atoms.norm(dim=0)


def sklearn_codes(x: Tensor, atoms: Tensor, penalty: float, positive: bool) -> Tensor:
    """scikit-learn divides the squared error by 2n: its alpha is λ/n."""
    n = atoms.shape[0]
    lasso = Lasso(penalty / n, fit_intercept=False, positive=positive, tol=1e-14, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own stop is at the edge of rounding; the comparison is the test
        return torch.from_numpy(np.stack([lasso.fit(atoms.numpy(), row).coef_.copy() for row in x.numpy()]))


@every_shape
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("penalty", [0.05, 0.3])
def test_codes_equal_scikit_learn(shape: tuple[int, int], positive: bool, penalty: float) -> None:
    """To 1e-6 in float64, and with the same exact zeros."""
    x, atoms = problem(*shape)
    codes, gap, _ = fista(x, atoms, penalty, tolerance=1e-14, max_iterations=50_000, positive=positive)
    expected = sklearn_codes(x, atoms, penalty, positive)
    torch.testing.assert_close(codes, expected, rtol=0, atol=1e-6)
    assert torch.equal(codes.abs() > 1e-6, expected.abs() > 1e-6)
    assert (codes == 0).any()
    assert (gap < 1e-13).all()
    assert not positive or (codes >= 0).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_every_sample_is_certified(positive: bool, tolerance: float, dtype: torch.dtype) -> None:
    """The duality gap over ½‖x‖² is below the tolerance for each, is what is reported, and bounds the suboptimality."""
    x, atoms = problem(16, 32, n=50, dtype=dtype)
    codes, gap, _ = fista(x, atoms, 0.3, tolerance=tolerance, positive=positive)
    energy = 0.5 * x.square().sum(-1)
    assert (gap <= tolerance).all()
    torch.testing.assert_close(lasso_gap(x, atoms, codes, 0.3, positive) / energy, gap, rtol=1e-3, atol=1e-6)
    best = fista(x.double(), atoms.double(), 0.3, tolerance=1e-13, max_iterations=50_000, positive=positive).codes
    excess = objective(x.double(), atoms.double(), codes.double(), 0.3) - objective(
        x.double(), atoms.double(), best, 0.3
    )
    assert (excess <= tolerance * energy + 1e-5).all()
    assert (excess >= -1e-6).all()


def objective(x: Tensor, atoms: Tensor, codes: Tensor, penalty: float) -> Tensor:
    return 0.5 * (x - codes @ atoms.T).square().sum(-1) + penalty * codes.abs().sum(-1)


@pytest.mark.parametrize("positive", [False, True])
def test_gap_is_never_negative_and_zero_only_at_the_solution(positive: bool) -> None:
    x, atoms = problem(8, 20)
    best = fista(x, atoms, 0.3, tolerance=1e-14, max_iterations=50_000, positive=positive).codes
    assert (lasso_gap(x, atoms, best, 0.3, positive).abs() < 1e-12).all()
    for size in (1e-3, 0.1, 1.0):
        codes = best + size * torch.randn_like(best)
        codes = codes.clamp_min(0) if positive else codes
        excess = objective(x, atoms, codes, 0.3) - objective(x, atoms, best, 0.3)
        assert (lasso_gap(x, atoms, codes, 0.3, positive) >= excess - 1e-12).all()


def test_easy_samples_stop_early() -> None:
    """A sample leaves the batch when it is done: beside harder ones it gets the very codes it gets alone."""
    _, atoms = problem(8, 20)
    easy, hard = 1e-3 * atoms[:, 0] + atoms[:, 1], torch.randn(8, dtype=torch.float64)
    x = torch.stack([easy, hard, torch.zeros(8, dtype=torch.float64)])
    together, alone = (fista(batch, atoms, 0.05, tolerance=1e-4) for batch in (x, x[:1]))
    slow = fista(x[1:2], atoms, 0.05, tolerance=1e-4)
    assert alone.n_iterations < slow.n_iterations
    assert together.n_iterations == slow.n_iterations
    torch.testing.assert_close(together.codes[:2], torch.cat([alone.codes, slow.codes]), rtol=0, atol=1e-12)
    longer = fista(x[:1], atoms, 0.05, tolerance=1e-13, max_iterations=10_000).codes
    assert (alone.codes - longer).abs().max() > 1e-9, "it would not show if the sample had gone on"
    assert not together.codes[2].any()
    assert together.gap[2] == 0


def test_warm_start() -> None:
    """From the solution nothing is left to do; from anywhere the same solution is reached; the start is not changed."""
    x, atoms = problem(8, 20)
    cold = fista(x, atoms, 0.1, tolerance=1e-10, max_iterations=20_000)
    warm = fista(x, atoms, 0.1, tolerance=1e-10, start=cold.codes)
    assert warm.n_iterations == 10 < cold.n_iterations
    torch.testing.assert_close(warm.codes, cold.codes, rtol=0, atol=1e-4)
    start = torch.randn_like(cold.codes)
    kept = start.clone()
    other = fista(x, atoms, 0.1, tolerance=1e-14, max_iterations=50_000, start=start)
    torch.testing.assert_close(other.codes, sklearn_codes(x, atoms, 0.1, positive=False), rtol=0, atol=1e-6)
    assert torch.equal(start, kept)


def test_limits() -> None:
    """A large penalty gives zeros; iterations are bounded; the gap reported is then the true one."""
    x, atoms = problem(8, 20)
    largest = float((x @ atoms).abs().max())
    assert not fista(x, atoms, 1.01 * largest).codes.any()
    assert fista(x, atoms, 0.95 * largest, tolerance=1e-8).codes.any()
    short = fista(x, atoms, 0.01, tolerance=1e-12, max_iterations=7)
    assert short.n_iterations == 7
    assert (short.gap > 1e-12).any()
    torch.testing.assert_close(short.gap, lasso_gap(x, atoms, short.codes, 0.01) / (0.5 * x.square().sum(-1)))
