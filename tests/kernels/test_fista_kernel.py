"""The FISTA kernel solves the lasso to its gap, as the plain solver does."""

import pytest
import torch

pytest.importorskip("triton", reason="kernels need Triton")

from softspike.kernels.fista import fista_codes
from softspike.solver import fista, lasso_gap

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize(("n_rows", "n_features", "d"), [(5, 8, 12), (17, 6, 10)])
def test_codes_equal_the_plain_solvers(n_rows, n_features, d):
    random = torch.Generator().manual_seed(1)
    x, atoms = torch.randn(2, n_rows, n_features, generator=random), torch.randn(2, n_features, d, generator=random)
    penalties = torch.tensor([[0.5, 9.0], [2.0, 9.0]])  # two schedules of two steps; the clock stands at step 0
    gram = (atoms.mT @ atoms).to(DEVICE)
    bounds = torch.linalg.matrix_norm(gram, 2) * 1.01
    codes, points = torch.full((2, n_rows, d), 7.0, device=DEVICE), torch.empty(2, n_rows, d, device=DEVICE)
    gaps = torch.empty(2, n_rows, device=DEVICE)
    fista_codes(
        gram, (x @ atoms).to(DEVICE), x.square().sum(-1).to(DEVICE), codes, points, gaps, bounds,
        penalties.to(DEVICE), torch.tensor([1, 0], dtype=torch.int32, device=DEVICE),
        torch.zeros(4, dtype=torch.int32, device=DEVICE), tolerance=1e-3, max_iterations=200,
    )  # fmt: skip
    for r, penalty in enumerate((2.0, 0.5)):
        z = codes[r].cpu()
        gap = lasso_gap(x[r], atoms[r], z, penalty) / (0.5 * x[r].square().sum(-1))
        assert float(gap.max()) < 2e-3
        torch.testing.assert_close(gaps[r].cpu(), gap, atol=2e-4, rtol=0.1)
        plain = fista(x[r], atoms[r], penalty, tolerance=1e-5, max_iterations=2000).codes
        torch.testing.assert_close(z @ atoms[r].T, plain @ atoms[r].T, atol=0.2, rtol=0)
        assert float((z != 0).sum()) < z.numel()


def test_more_components_than_registers_hold_are_refused():
    empty = torch.empty(1, 1, 600)
    with pytest.raises(ValueError, match="600 components were given, and this kernel takes at most 512"):
        fista_codes(*[empty] * 10, tolerance=1e-3, max_iterations=10)
