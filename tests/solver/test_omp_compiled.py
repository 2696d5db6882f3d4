"""The compiled pursuit against the plain one, over a table of cases."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from softspike.kernels.compiled import available
from softspike.solver import omp, omp_at_mean_count, omp_residuals
from softspike.solver.omp_compiled import pursue_compiled
from softspike.solver.omp_plain import Pursuit, pursue_plainly
from softspike.solver.scale import unit_and_norm

pytestmark = pytest.mark.skipif(not available(), reason="numba is not installed")
both_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
Case = tuple[Tensor, Tensor, int, float]  # x, atoms, count, ‖r‖² to stop at over ‖x‖²


def problem(n_features: int, n_components: int, n: int = 60) -> tuple[Tensor, Tensor]:
    atoms = torch.randn(n_features, n_components, dtype=torch.float64)
    signal = torch.randn(n, n_components, dtype=torch.float64) * (torch.rand(n, n_components) < 4 / n_components)
    return signal @ atoms.T + 0.1 * torch.randn(n, n_features, dtype=torch.float64), atoms


def with_twins() -> Case:
    x, atoms = problem(16, 24)
    return x, torch.cat([atoms, atoms], 1), 8, 0.0


def with_zeros() -> Case:
    x, atoms = problem(16, 24)
    x[::3], atoms[:, ::5] = 0, 0
    return x, atoms, 8, 0.0


def nearly_alike() -> Case:
    x, atoms = problem(16, 24)
    return x, torch.cat([atoms, atoms + 1e-4 * torch.randn_like(atoms)], 1), 10, 0.0


def exactly_sparse() -> Case:
    """Two atoms make the signal; what is left after them is rounding."""
    _, atoms = problem(16, 24)
    return atoms[:, :20].T + 3 * atoms[:, 1:21].T, atoms, 10, 1e-9


CASES: dict[str, Callable[[], Case]] = {
    "square": lambda: (*problem(32, 32), 8, 0.0),
    "narrow": lambda: (*problem(40, 10), 10, 0.0),
    "wide": lambda: (*problem(12, 700), 6, 0.0),
    "one atom": lambda: (*problem(12, 1), 1, 0.0),
    "one feature": lambda: (*problem(1, 9), 1, 0.0),
    "no count": lambda: (*problem(12, 20), 0, 0.0),
    "to a tolerance": lambda: (*problem(24, 40), 24, 0.1),
    "to a small tolerance": lambda: (*problem(24, 40), 24, 1e-3),
    "twins": with_twins,
    "zero signals and atoms": with_zeros,
    "nearly alike": nearly_alike,
    "exactly sparse": exactly_sparse,
}


def image(found: Pursuit, unit: Tensor) -> Tensor:
    padded = torch.cat([unit, unit.new_zeros(len(unit), 1)], 1)
    return (padded.T[found.chosen] * found.coefficients[..., None]).sum(1)


@both_types
@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_plain(name: str, dtype: torch.dtype) -> None:
    """The same atoms in the same order in 9 of 10 samples or more (rounding decides between equals); the same
    reconstruction in those, and nowhere a residual that differs by more than 1 % of the signal's energy."""
    given, atoms, count, share = CASES[name]()
    x, unit = unit_and_norm(given.to(dtype), 1)[0], unit_and_norm(atoms.to(dtype), 0)[0]
    counts, stop = torch.full((len(x),), count), torch.full((len(x),), share, dtype=torch.float64)
    plain, fast = (pursue(x, unit, counts, stop) for pursue in (pursue_plainly, pursue_compiled))
    same = (plain.chosen == fast.chosen).all(-1)
    assert same.double().mean() >= (0.5 if name == "twins" else 0.9)
    tolerance = 2e-4 if dtype == torch.float32 else 1e-9
    for one, other in zip(plain[2:], fast[2:], strict=True):
        torch.testing.assert_close(one[same], other[same], rtol=0, atol=tolerance)
    torch.testing.assert_close(image(plain, unit)[same], image(fast, unit)[same], rtol=0, atol=tolerance)
    left = [(x - image(found, unit)).square().sum(-1) for found in (plain, fast)]
    torch.testing.assert_close(*left, rtol=0, atol=0.01)
    assert ((fast.energies > 0) == (fast.chosen < unit.shape[1])).all()
    taken = (fast.chosen < unit.shape[1]).sum(-1)
    assert (taken <= count).all()
    if share > 0:
        assert (left[1][taken < min(count, len(unit))] <= share * (1 + 1e-4)).all()


@both_types
def test_counts_of_each_sample(dtype: torch.dtype) -> None:
    """A pursuit to a smaller count is the beginning of one to a larger count."""
    given, atoms = problem(24, 40)
    x, unit = unit_and_norm(given.to(dtype), 1)[0], unit_and_norm(atoms.to(dtype), 0)[0]
    counts, stop = torch.arange(len(x)) % 7, torch.zeros(len(x), dtype=torch.float64)
    for pursue in (pursue_plainly, pursue_compiled):
        some, full = pursue(x, unit, counts, stop), pursue(x, unit, torch.full_like(counts, 6), stop)
        taken = torch.arange(6) < counts[:, None]
        assert torch.equal(some.chosen, torch.where(taken, full.chosen, unit.shape[1]))
        torch.testing.assert_close(some.projections, full.projections * taken)


@both_types
@pytest.mark.parametrize("of_signal", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("of_atoms", [1e-5, 1.0, 1e5])
def test_scale_does_not_matter(dtype: torch.dtype, of_signal: float, of_atoms: float) -> None:
    """Large enough a batch for the compiled road; relative to the scale to 1e-4 in float32."""
    x, atoms = (value.to(dtype) for value in problem(64, 256, n=4000))
    codes = omp(of_signal * x, of_atoms * atoms, n_active=5) * (of_atoms / of_signal)
    expected = omp(x, atoms, n_active=5)
    same = ((codes != 0) == (expected != 0)).all(-1)
    assert same.double().mean() > 0.99
    torch.testing.assert_close(codes[same], expected[same], rtol=0, atol=1e-4 * float(expected.abs().max()))
    assert ((expected != 0).sum(-1) == 5).all()


def test_the_public_door_takes_the_compiled_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """`omp`, `omp_at_mean_count` and `omp_residuals` give what they give without numba; to 1e-8 in float64."""
    x, atoms = problem(64, 256, n=300)
    x[5, 3], x[7] = torch.nan, torch.inf

    def everything() -> list[Tensor]:
        some = x.nan_to_num(0, 0, 0)
        return [omp(x, atoms, n_active=6), omp(x, atoms, n_active=30, tolerance=20.0),
                omp_at_mean_count(x, atoms, 4.5), omp_residuals(some, atoms, [2, 5])]  # fmt: skip

    monkeypatch.setattr("softspike.solver.pursuit._WORTH_IT", 1)
    fast = everything()
    monkeypatch.setattr("softspike.solver.pursuit.accepts", lambda x: False)
    for one, other in zip(fast, everything(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)
    assert not fast[0][5].any()
    assert not fast[0][7].any()
