"""Least squares on a chosen support."""

import pytest
import torch

from softspike.generator import random_atoms
from softspike.solver import refit_on_support


def problem(n_active: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x (6, 12), atoms (12, 20), codes with a support of their own in each row, all float64."""
    codes = torch.zeros(6, 20, dtype=torch.float64)
    for row in codes:
        row[torch.randperm(20)[:n_active]] = torch.randn(n_active, dtype=torch.float64)
    return torch.randn(6, 12, dtype=torch.float64), random_atoms(12, 20).double(), codes


def error(x: torch.Tensor, atoms: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    return (x - codes @ atoms.T).square().sum(-1)


def test_as_many_steps_as_atoms_are_least_squares() -> None:
    """Conjugate gradients end after k steps; against lstsq, to 1e-8."""
    x, atoms, codes = problem()
    refitted = refit_on_support(x, atoms, codes, n_steps=4)
    for row, start, fit in zip(x, codes, refitted, strict=True):
        on = start != 0
        best = torch.linalg.lstsq(atoms[:, on], row[:, None]).solution[:, 0]
        torch.testing.assert_close(fit[on], best, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_steps", [1, 2, 3])
def test_zeros_stay_zero_and_no_error_rises(n_steps: int) -> None:
    x, atoms, codes = problem()
    refitted = refit_on_support(x, atoms, codes, n_steps)
    assert torch.equal(refitted != 0, codes != 0)
    assert (error(x, atoms, refitted) <= error(x, atoms, codes) + 1e-12).all()
    assert (error(x, atoms, refitted) <= error(x, atoms, refit_on_support(x, atoms, codes, n_steps - 1)) + 1e-12).all()


def test_one_step_is_steepest_descent_with_exact_line_search() -> None:
    """The residual's slope along the step it took is 0."""
    x, atoms, codes = problem()
    refitted = refit_on_support(x, atoms, codes)
    slope = (x - refitted @ atoms.T) @ atoms
    assert ((refitted - codes) * slope).sum(-1).abs().max() < 1e-10


def test_empty_supports_and_perfect_codes_stay_as_they_are() -> None:
    x, atoms, codes = problem()
    assert torch.equal(refit_on_support(x, atoms, torch.zeros_like(codes)), torch.zeros_like(codes))
    torch.testing.assert_close(refit_on_support(codes @ atoms.T, atoms, codes, 3), codes)
