"""Second thoughts about supports."""

import pytest
import torch
from torch import Tensor

from softspike.generator import random_atoms
from softspike.kernels.compiled import available
from softspike.solver import SupportCorrection, refit_on_support
from softspike.solver import correction as correction_module
from softspike.solver.correction_compiled import correct_compiled
from softspike.solver.correction_dense import STEPS

N, D, TARGET = 500, 24, 4


def problem(n_components: int = 40, positive: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """x (N, D) made of four atoms each, atoms (D, d), and a poor first code: the largest correlations. float64."""
    random = torch.Generator().manual_seed(0)
    atoms = random_atoms(D, n_components, random).double()
    on = torch.rand(N, n_components, generator=random).argsort(1) < TARGET
    values = torch.randn(N, n_components, generator=random, dtype=torch.float64)
    x = (on * (values.abs() if positive else values)) @ atoms.T
    match = x @ atoms
    size = match if positive else match.abs()
    return x, atoms, match * (size > size.flatten().sort(descending=True).values[N * TARGET])


def error(x: Tensor, atoms: Tensor, codes: Tensor) -> float:
    return float((x - codes @ atoms.T).square().sum())


@pytest.mark.parametrize("n_components", [40, 80])  # below and above 2D, where products are taken with AᵀA and with A
def test_without_rounds_it_is_a_refit(n_components: int) -> None:
    """Against the plain function, to 1e-10; so it is with rounds whose levels have not been set."""
    x, atoms, codes = problem(n_components)
    for correction in (SupportCorrection(0), SupportCorrection(2)):
        torch.testing.assert_close(
            correction(x, atoms, codes).code, refit_on_support(x, atoms, codes, 3), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("n_components", [40, 80])
@pytest.mark.parametrize("positive", [False, True])
def test_more_rounds_explain_more_with_as_many(n_components: int, positive: bool) -> None:
    """The count is the target to one entry (non-negative codes, of which a fit leaves some at zero whatever the
    level, up to 5 % short of it); the error falls, by more than a half in all."""
    x, atoms, codes = problem(n_components, positive)
    errors = []
    for n_rounds in (0, 1, 3, 10):
        correction = SupportCorrection(n_rounds, positive).double()
        correction.calibrate(x, atoms, codes, TARGET)
        code = correction(x, atoms, codes).code
        errors.append(error(x, atoms, code))
        if n_rounds == 0:
            continue
        count = int((code != 0).sum())
        assert N * TARGET * (0.95 if positive else 1) - 1 <= count <= N * TARGET + 1
        assert not positive or (code >= 0).all()
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]


def test_the_slope_is_that_of_the_code() -> None:
    """Aᵀ(x − Az), kept up to date by its increments alone: to 1e-10."""
    x, atoms, codes = problem()
    correction = SupportCorrection(2).double()
    correction.calibrate(x, atoms, codes, TARGET)
    code, slope = correction(x, atoms, codes)
    torch.testing.assert_close(slope, (x - code @ atoms.T) @ atoms, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("positive", [False, True])
def test_supports_that_fit_exactly_are_left_alone(positive: bool) -> None:
    """24 of 40 active in 24 dimensions: no levels are set, and the support is that of the first code."""
    x, atoms, codes = problem(40, positive)
    correction = SupportCorrection(5, positive).double()
    correction.calibrate(x, atoms, codes, 3.0)
    assert correction.levels.isfinite().all()
    correction.calibrate(x, atoms, codes, 24.0)
    assert correction.levels.isnan().all()
    assert torch.equal(correction(x, atoms, codes).code != 0, codes != 0)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_few_rows_are_not_starved(n_rows: int) -> None:
    """15 % of one component of two rows is none: at least one is added in a round, so that all come back."""
    x, atoms, codes = problem()
    correction = SupportCorrection(20).double()
    correction.calibrate(x[:n_rows], atoms, codes[:n_rows], 1.0)
    assert int((correction(x[:n_rows], atoms, codes[:n_rows]).code != 0).sum()) == n_rows


def test_weights_count() -> None:
    """Rows that weigh nothing do not move the levels."""
    x, atoms, codes = problem()
    half = torch.arange(N) < N // 2
    one, two = SupportCorrection(2).double(), SupportCorrection(2).double()
    one.calibrate(x[half], atoms, codes[half], TARGET)
    two.calibrate(x, atoms, codes, TARGET, half.double() / half.sum())
    torch.testing.assert_close(one.levels, two.levels)


def test_each_row_is_for_itself() -> None:
    x, atoms, codes = problem()
    correction = SupportCorrection(2).double()
    correction.calibrate(x, atoms, codes, TARGET)
    together = correction(x, atoms, codes).code
    torch.testing.assert_close(correction(x[3:4], atoms, codes[3:4]).code, together[3:4])


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("apart", [0.01, 0.1, 2.0])  # noise on the second half of the atoms, which is the first again
def test_atoms_that_depend_on_each_other(positive: bool, apart: float) -> None:
    """40 atoms in 6 dimensions, in float32, rows of 1e-3 to 1e3 in length with up to 40 active: none ends with more
    error than the code 0 leaves, nor with values that cancel, of fifty times its length; compiled, neither."""
    random = torch.Generator().manual_seed(0)
    half = torch.randn(6, 20, generator=random)
    atoms = torch.nn.functional.normalize(
        torch.cat([half, half + apart * torch.randn(6, 20, generator=random)], 1), dim=0
    )
    x = torch.randn(20_000, 6, generator=random) * 10 ** (6 * torch.rand(20_000, 1, generator=random) - 3)
    match = x @ atoms
    codes = match * ((match if positive else match.abs()) > 1)
    correction = SupportCorrection(5, positive)
    correction.calibrate(x[::2], atoms, codes[::2], 12.0)
    found = [correction.plainly(x, atoms, codes, correction.levels).code]
    if available():
        found.append(correct_compiled(x, atoms, atoms.T @ atoms, codes, correction.levels, STEPS, positive).code)
    for code in found:
        assert ((x - code @ atoms.T).norm(dim=1) <= 1.001 * x.norm(dim=1)).all()
        assert (code.norm(dim=1) <= 50 * x.norm(dim=1)).all()
        assert not positive or (code >= 0).all()


@pytest.mark.skipif(not available(), reason="numba is not installed")
@pytest.mark.parametrize("n_components", [40, 80, 600])
@pytest.mark.parametrize("n_rounds", [1, 2, 10])
@pytest.mark.parametrize("positive", [False, True])
def test_compiled_equals_plain(n_components: int, n_rounds: int, positive: bool) -> None:
    """Codes and slopes of all but five rows in a hundred to 1e-9 in float64, to 1e-4 of the largest in float32; all
    rows in float64 to 1e-4. A fit that has nearly converged makes much of rounding."""
    x, atoms, codes = problem(n_components, positive)
    correction = SupportCorrection(n_rounds, positive).double()
    correction.calibrate(x[::2], atoms, codes[::2], TARGET)  # levels are values of these rows: too near to call there
    x, codes = x[1::2], codes[1::2]
    codes[7] = 0
    wanted = correction.plainly(x, atoms, codes, correction.levels)
    found = correct_compiled(x, atoms, atoms.T @ atoms, codes, correction.levels, STEPS, positive)
    for one, other in zip(found, wanted, strict=True):
        apart = (one - other).abs().amax(1)
        assert (apart < 1e-9).double().mean() > 0.95
        assert apart.max() < 1e-4
    atoms = atoms.float()
    given = x.float(), atoms, atoms.T @ atoms, codes.float(), correction.levels.float()
    low = correct_compiled(*given, STEPS, positive)[0]
    near = ((low - wanted.code).abs().amax(1) < 1e-4 * wanted.code.abs().max()).float().mean()
    assert near > 0.95


@pytest.mark.skipif(not available(), reason="numba is not installed")
@pytest.mark.parametrize("positive", [False, True])
def test_levels_are_set_by_compiled_rounds_as_well(positive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of ten rounds on 500 rows of 600 components, to 1e-6 of the largest."""
    x, atoms, codes = problem(600, positive)
    compiled, plain = SupportCorrection(10, positive).double(), SupportCorrection(10, positive).double()
    assert correction_module.worth_compiling(x, atoms)
    compiled.calibrate(x, atoms, codes, TARGET)
    monkeypatch.setattr(correction_module, "worth_compiling", lambda x, atoms: False)
    plain.calibrate(x, atoms, codes, TARGET)
    torch.testing.assert_close(compiled.levels, plain.levels, rtol=0, atol=1e-6 * float(plain.levels.max()))


@pytest.mark.skipif(not available(), reason="numba is not installed")
def test_large_batches_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it pays; what is not a number stays that, in its own row."""
    x, atoms, codes = problem(600)
    correction = SupportCorrection(2).double()
    correction.calibrate(x, atoms, codes, TARGET)
    monkeypatch.setattr(SupportCorrection, "plainly", None)
    codes[3, 5], x[4, 0] = torch.nan, torch.nan
    found = correction(x, atoms, codes).code
    assert found.isnan().any(1).nonzero()[:, 0].tolist() == [3, 4]


def test_nothing_to_explain_stays_empty() -> None:
    x, atoms, codes = problem()
    correction = SupportCorrection(2).double()
    correction.calibrate(x, atoms, codes, TARGET)
    empty = correction(torch.zeros_like(x), atoms, torch.zeros_like(codes))
    assert not empty.code.any()
    assert not empty.slope.any()
