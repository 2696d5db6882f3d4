"""Orthogonal matching pursuit against scikit-learn, and its corner cases."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.linear_model import orthogonal_mp
from torch import Tensor

from softspike.solver import omp, omp_at_mean_count, omp_by_gain, pursuit

SHAPES = [(8, 8), (12, 20), (20, 8), (10, 200)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def problem(n_features: int, n_components: int, n: int = 30) -> tuple[Tensor, Tensor]:
    atoms = torch.randn(n_features, n_components, dtype=torch.float64)
    return torch.randn(n, n_features, dtype=torch.float64), atoms / atoms.norm(dim=0)


def sklearn_codes(x: Tensor, atoms: Tensor, **stop: float) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        each = [orthogonal_mp(atoms.numpy(), row, **stop) for row in x.numpy()]
    return torch.from_numpy(np.stack(each))


def counts(codes: Tensor) -> Tensor:
    return (codes != 0).sum(-1)


def energy(x: Tensor, atoms: Tensor, codes: Tensor) -> Tensor:
    return (x - codes @ atoms.T).square().sum(-1)


@every_shape
@pytest.mark.parametrize("n_active", [1, 3, 6])
def test_fixed_count_equals_scikit_learn(shape: tuple[int, int], n_active: int) -> None:
    """To 1e-6 in float64."""
    x, atoms = problem(*shape)
    codes = omp(x, atoms, n_active=n_active)
    assert (counts(codes) == n_active).all()
    torch.testing.assert_close(codes, sklearn_codes(x, atoms, n_nonzero_coefs=n_active), rtol=0, atol=1e-6)


@every_shape
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_tolerance_equals_scikit_learn(shape: tuple[int, int], share: float) -> None:
    """A global tolerance on ‖r‖²: the same codes, every residual below it, and no atom to spare."""
    noise, atoms = problem(*shape, n=60)
    x = 0.1 * noise + torch.randn(60, shape[1], dtype=torch.float64) @ atoms.T
    tolerance = share * float(x.square().sum(-1).mean())
    x = x[x.square().sum(-1) > tolerance]  # scikit-learn takes one atom even where none is needed
    codes = omp(x, atoms, tolerance=tolerance)
    torch.testing.assert_close(codes, sklearn_codes(x, atoms, tol=tolerance), rtol=0, atol=1e-6)
    assert (energy(x, atoms, codes) <= tolerance).all()
    for row, code in zip(x, codes, strict=True):
        fewer = int(counts(code)) - 1
        assert fewer < 0 or energy(row, atoms, omp(row[None], atoms, n_active=fewer)) > tolerance
    assert len(counts(codes).unique()) > 1


def test_atoms_of_any_norm() -> None:
    """The choice does not depend on the norms, and the coefficients undo them."""
    x, atoms = problem(12, 20)
    norms = torch.logspace(-3, 3, 20, dtype=torch.float64)
    torch.testing.assert_close(omp(x, atoms * norms, n_active=4) * norms, omp(x, atoms, n_active=4))


def test_per_sample_tolerance_and_count_together() -> None:
    x, atoms = problem(12, 20)
    tolerance = torch.linspace(0.1, 10, len(x), dtype=torch.float64)
    codes = omp(x, atoms, n_active=3, tolerance=tolerance)
    assert (counts(codes) <= 3).all()
    assert (counts(codes)[energy(x, atoms, codes) > tolerance] == 3).all()
    for row, code, limit in zip(x, codes, tolerance, strict=True):
        torch.testing.assert_close(omp(row[None], atoms, n_active=3, tolerance=float(limit))[0], code)


def test_duplicate_atoms_are_taken_once() -> None:
    """With every atom twice, the codes are those of the single ones on whichever twin came first."""
    x, atoms = problem(12, 20)
    codes = omp(x, torch.cat([atoms, atoms], 1), n_active=5)
    first, second = codes.split(20, dim=1)
    assert not ((first != 0) & (second != 0)).any()
    torch.testing.assert_close(first + second, omp(x, atoms, n_active=5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_stops_where_no_atom_helps(dtype: torch.dtype) -> None:
    """Three atoms, each three times over: after three the rest of x is out of reach, and no coefficient is wild."""
    x, atoms = (value.to(dtype) for value in problem(12, 3))
    codes = omp(x, atoms.repeat(1, 3), n_active=9)
    assert (counts(codes) == 3).all()
    exact = torch.linalg.lstsq(atoms, x.T).solution.T
    torch.testing.assert_close(codes.reshape(-1, 3, 3).sum(1), exact, rtol=1e-4, atol=1e-4)


def test_stops_where_nothing_is_left() -> None:
    """Inputs made of two atoms take two, whatever count is allowed; zero inputs and zero atoms take none."""
    _, atoms = problem(12, 20)
    atoms[:, 7] = 0
    x = torch.stack([atoms[:, 0] - 2 * atoms[:, 1], torch.zeros(12, dtype=torch.float64)])
    codes = omp(x, atoms, n_active=6)
    expected = torch.zeros(2, 20, dtype=torch.float64)
    expected[0, 0], expected[0, 1] = 1, -2
    torch.testing.assert_close(codes, expected)
    assert counts(codes).tolist() == [2, 0]
    assert not omp(x, torch.zeros(12, 5, dtype=torch.float64), n_active=3).any()


def test_limits_of_the_count() -> None:
    x, atoms = problem(8, 20)
    assert not omp(x, atoms, n_active=0).any()
    full = omp(x, atoms, n_active=1000)
    assert (counts(full) <= 8).all()
    torch.testing.assert_close(full @ atoms.T, x)
    with pytest.raises(ValueError, match=r"n_active.*tolerance"):
        omp(x, atoms)
    with pytest.raises(ValueError, match="-1"):
        omp(x, atoms, n_active=-1)


def test_float32_is_close_to_float64() -> None:
    x, atoms = problem(64, 64)
    codes = omp(x.float(), atoms.float(), n_active=20)
    assert codes.dtype == torch.float32
    torch.testing.assert_close(
        energy(x, atoms, codes.double()), energy(x, atoms, omp(x, atoms, n_active=20)), rtol=1e-2, atol=1e-4
    )


@pytest.mark.parametrize("spread", [0.0, 2.0], ids=["even norms", "norms over orders of magnitude"])
@pytest.mark.parametrize("mean_active", [0.5, 3.0, 7.3])
def test_mean_count_is_met_by_one_tolerance(mean_active: float, spread: float) -> None:
    """At most the target, within 2 % of it, and the codes are those of plain OMP at one tolerance."""
    x, atoms = problem(24, 40, n=400)
    x = x * torch.exp(spread * torch.randn(400, 1, dtype=torch.float64))
    codes = omp_at_mean_count(x, atoms, mean_active)
    mean = float(counts(codes).double().mean())
    assert 0.98 * mean_active <= mean <= mean_active
    left = energy(x, atoms, codes)
    cap = int(8 * mean_active) + 8
    tolerance = float(left[counts(codes) < cap].max()) * (1 + 1e-9)
    torch.testing.assert_close(codes, omp(x, atoms, n_active=cap, tolerance=tolerance), rtol=0, atol=1e-9)


def test_mean_count_out_of_reach_gives_what_there_is() -> None:
    x, atoms = problem(12, 20)
    assert not omp_at_mean_count(x, atoms, 0.0).any()
    full = omp_at_mean_count(x, atoms, 50.0)
    torch.testing.assert_close(full @ atoms.T, x)
    with pytest.raises(ValueError, match="mean_active"):
        omp_at_mean_count(x, atoms, -1.0)


def test_plain_pursuits_in_parts_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rows at a time, one of which takes fewer atoms than the longest of the others."""
    random = torch.Generator().manual_seed(0)
    x, atoms = torch.randn(7, 12, generator=random), torch.randn(12, 20, generator=random)
    whole = omp(x, atoms, n_active=6, tolerance=3.0)
    monkeypatch.setattr(pursuit, "_NUMBERS", 2 * 6 * (6 + 12))
    assert torch.equal(omp(x, atoms, n_active=6, tolerance=3.0), whole)
    assert len(set((whole != 0).sum(1).tolist())) > 2


@pytest.mark.parametrize("mean_active", [2.0, 5.0])
def test_one_gain_for_all(mean_active: float) -> None:
    """The mean count is met to one atom in all, every code is OMP's of its own count, no sample was refused an atom
    that gains more than one another sample got, and more is explained than with the count fixed."""
    x, atoms = problem(24, 40, n=300)
    codes = omp_by_gain(x, atoms, mean_active)
    taken, rows = counts(codes), torch.arange(300)
    assert abs(int(taken.sum()) - mean_active * 300) <= 1
    left = torch.stack([energy(x, atoms, omp(x, atoms, n_active=k)) for k in range(25)], 1)
    torch.testing.assert_close(energy(x, atoms, codes), left[rows, taken])
    lowest = (left[:, :-1] - left[:, 1:]).cummin(1).values
    assert lowest[rows, taken - 1][taken > 0].min() >= lowest[rows, taken].max() - 1e-9
    assert energy(x, atoms, codes).sum() < energy(x, atoms, omp(x, atoms, n_active=int(mean_active))).sum()
