"""The lasso's two solvers against scikit-learn, their certificate, and their stop sample by sample."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from torch import Tensor

from softspike.solver import LassoResult, fista, lasso, lasso_gap
from softspike.solver.bound import largest_eigenvalue

SHAPES = [(8, 8), (8, 20), (20, 8), (6, 60)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)  # the last two are wide: lasso takes working sets
every_solver = pytest.mark.parametrize("solve", [fista, lasso], ids=lambda solve: solve.__name__)
Solve = Callable[..., LassoResult]


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


@every_solver
@every_shape
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("penalty", [0.05, 0.3])
def test_codes_equal_scikit_learn(solve: Solve, shape: tuple[int, int], positive: bool, penalty: float) -> None:
    """To 1e-6 in float64, and with the same exact zeros."""
    x, atoms = problem(*shape)
    codes, gap, _ = solve(x, atoms, penalty, tolerance=1e-14, max_iterations=50_000, positive=positive)
    expected = sklearn_codes(x, atoms, penalty, positive)
    torch.testing.assert_close(codes, expected, rtol=0, atol=1e-6)
    assert torch.equal(codes.abs() > 1e-6, expected.abs() > 1e-6)
    assert (codes == 0).any()
    assert (gap < 1e-13).all()
    assert not positive or (codes >= 0).all()


@every_solver
@pytest.mark.parametrize("shape", [(16, 32), (16, 80)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_every_sample_is_certified(
    solve: Solve, shape: tuple[int, int], positive: bool, tolerance: float, dtype: torch.dtype
) -> None:
    """The duality gap over ½‖x‖² is below the tolerance for each, is what is reported, and bounds the suboptimality."""
    x, atoms = problem(*shape, n=50, dtype=dtype)
    codes, gap, _ = solve(x, atoms, 0.3, tolerance=tolerance, positive=positive)
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


@every_solver
@pytest.mark.parametrize("shape", [(8, 12), (8, 20)], ids=str)
def test_easy_samples_stop_early(solve: Solve, shape: tuple[int, int]) -> None:
    """A sample leaves the batch when it is done: beside harder ones it gets the very codes it gets alone."""
    _, atoms = problem(*shape)
    easy, hard = 0.4 * atoms[:, 0] + atoms[:, 1], torch.randn(8, dtype=torch.float64)
    x = torch.stack([easy, hard, torch.zeros(8, dtype=torch.float64)])
    together, alone = (solve(batch, atoms, 0.05, tolerance=3e-3) for batch in (x, x[:1]))
    slow = solve(x[1:2], atoms, 0.05, tolerance=3e-3)
    assert alone.n_iterations < slow.n_iterations
    assert together.n_iterations == slow.n_iterations
    torch.testing.assert_close(together.codes[:2], torch.cat([alone.codes, slow.codes]), rtol=0, atol=1e-9)
    longer = solve(x[:1], atoms, 0.05, tolerance=1e-13, max_iterations=10_000).codes
    assert (alone.codes - longer).abs().max() > 1e-8, "it would not show if the sample had gone on"
    assert not together.codes[2].any()
    assert together.gap[2] == 0


@every_solver
@pytest.mark.parametrize("shape", [(8, 12), (8, 20)], ids=str)
def test_warm_start(solve: Solve, shape: tuple[int, int]) -> None:
    """From the solution little is left to do; from anywhere the same solution is reached; the start is not changed."""
    x, atoms = problem(*shape)
    cold = solve(x, atoms, 0.1, tolerance=1e-10, max_iterations=20_000)
    warm = solve(x, atoms, 0.1, tolerance=1e-10, start=cold.codes)
    assert warm.n_iterations <= 12 < cold.n_iterations
    torch.testing.assert_close(warm.codes, cold.codes, rtol=0, atol=1e-4)
    start = torch.randn_like(cold.codes)
    kept = start.clone()
    other = solve(x, atoms, 0.1, tolerance=1e-14, max_iterations=50_000, start=start)
    torch.testing.assert_close(other.codes, sklearn_codes(x, atoms, 0.1, positive=False), rtol=0, atol=1e-6)
    assert torch.equal(start, kept)


@every_solver
@every_shape
@pytest.mark.parametrize("penalty", [0.3, 100.0])
def test_zeros_are_a_start(solve: Solve, shape: tuple[int, int], penalty: float) -> None:
    """They are also the answer where the penalty is large."""
    x, atoms = problem(*shape)
    found = solve(x, atoms, penalty, start=torch.zeros(len(x), shape[1], dtype=x.dtype), tolerance=1e-6)
    torch.testing.assert_close(found.codes, solve(x, atoms, penalty, tolerance=1e-6).codes, atol=1e-2, rtol=0)
    assert bool((found.gap <= 1e-6).all())
    assert bool(found.codes.any()) == (penalty < 1)


@every_solver
def test_limits(solve: Solve) -> None:
    """A large penalty gives zeros; iterations are bounded; the gap reported is then the true one."""
    x, atoms = problem(8, 20)
    largest = float((x @ atoms).abs().max())
    assert not solve(x, atoms, 1.01 * largest).codes.any()
    assert solve(x, atoms, 0.95 * largest, tolerance=1e-8).codes.any()
    short = solve(x, atoms, 0.01, tolerance=1e-12, max_iterations=7)
    assert short.n_iterations <= 7
    assert (short.gap > 1e-12).any()
    torch.testing.assert_close(short.gap, lasso_gap(x, atoms, short.codes, 0.01) / (0.5 * x.square().sum(-1)))


@every_solver
@every_shape
def test_a_penalty_per_sample(solve: Solve, shape: tuple[int, int]) -> None:
    """Each sample as if it were alone with its own penalty, in either shape; to 1e-6 at a gap of 1e-13."""
    x, atoms = problem(*shape)
    levels = torch.linspace(0.05, 0.6, len(x), dtype=torch.float64)
    options = {"tolerance": 1e-13, "max_iterations": 50_000}
    alone = torch.cat([solve(x[i : i + 1], atoms, float(levels[i]), **options).codes for i in range(len(x))])
    for penalty in (levels, levels[:, None]):
        together = solve(x, atoms, penalty, **options)
        torch.testing.assert_close(together.codes, alone, rtol=0, atol=1e-6)
        assert (lasso_gap(x, atoms, together.codes, penalty) <= 1e-13 * x.square().sum(-1)).all()
    with pytest.raises(ValueError, match=r"penalty has shape \(5,\), expected a number or 6"):
        solve(x, atoms, levels[:5])


DICTIONARIES = {
    "unit": lambda atoms: atoms,
    "lengths from 0.01 to 100": lambda atoms: atoms * torch.logspace(-2, 2, atoms.shape[1], dtype=atoms.dtype),
    "with an atom of zeros": lambda atoms: atoms * (torch.arange(atoms.shape[1]) != 3),
    "every atom twice": lambda atoms: torch.cat([atoms, atoms], dim=1),
    "nearly one direction": lambda atoms: 0.3 * atoms + atoms[:, :1],
}


@pytest.mark.parametrize("kind", DICTIONARIES)
@pytest.mark.parametrize("shape", [(12, 16), (12, 60)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_lasso_is_certified_on_awkward_dictionaries(kind: str, shape: tuple[int, int], positive: bool) -> None:
    """Fast steps have no guarantee of their own; the gap they are held to is recomputed from scratch, in float64."""
    x, atoms = problem(*shape, n=100)
    atoms, x = DICTIONARIES[kind](atoms), x * torch.logspace(-3, 3, 100, dtype=torch.float64)[:, None]
    penalty = 0.1 * (x @ atoms).abs().amax(-1)
    codes, gap, _ = lasso(x, atoms, penalty, tolerance=1e-6, max_iterations=100_000, positive=positive)
    energy = 0.5 * x.square().sum(-1)
    assert (lasso_gap(x, atoms, codes, penalty, positive) <= 1.01e-6 * energy).all()
    torch.testing.assert_close(lasso_gap(x, atoms, codes, penalty, positive) / energy, gap, rtol=0, atol=1e-9)


@pytest.mark.parametrize("shape", [(32, 48), (32, 300), (32, 2100)], ids=str)
def test_lasso_does_not_depend_on_threads(shape: tuple[int, int]) -> None:
    """Nor on the order of the samples, to a rounding: groups are made of samples alike, not of neighbours."""
    x, atoms = problem(*shape, n=700, dtype=torch.float32)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = lasso(x, atoms, 0.5)
        torch.set_num_threads(3)
        three = lasso(x, atoms, 0.5)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(three.codes, one.codes, rtol=0, atol=1e-5)
    turned = lasso(x.flip(0), atoms, 0.5).codes.flip(0)
    torch.testing.assert_close(turned, one.codes, rtol=0, atol=1e-5)


def test_lasso_takes_positive_penalties_only() -> None:
    x, atoms = problem(8, 20)
    with pytest.raises(ValueError, match="penalty is 0 at its smallest, expected numbers > 0"):
        lasso(x, atoms, 0.0)
    assert lasso(x[:0], atoms, 1.0).codes.shape == (0, 20)


def test_values_that_are_not_finite_are_reported() -> None:
    """They come back with a gap that is not a number; their neighbours are solved."""
    x, atoms = problem(8, 20)
    x[2, 3] = torch.nan
    codes, gap, _ = lasso(x, atoms, 0.1)
    assert gap[2].isnan()
    others = torch.arange(len(x)) != 2
    assert (gap[others] <= 1e-3).all()
    assert codes[others].isfinite().all()


@pytest.mark.parametrize("shape", [(8, 8), (30, 200), (200, 30), (1, 5)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_bound_on_the_largest_eigenvalue(shape: tuple[int, int], dtype: torch.dtype) -> None:
    """Never below it, at most 5 % above it; whatever the scale."""
    for scale in (1e-6, 1.0, 1e6):
        for rank in (1, min(shape)):
            atoms = scale * torch.randn(shape[0], rank, dtype=dtype) @ torch.randn(rank, shape[1], dtype=dtype)
            truth = float(torch.linalg.matrix_norm(atoms.double(), 2)) ** 2
            assert truth <= float(largest_eigenvalue(atoms)) <= 1.05 * truth
    assert float(largest_eigenvalue(torch.zeros(3, 4))) < 1e-20
