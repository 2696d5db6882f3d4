"""The two kernels that score samples give the same scores, whatever a family samples and however work is divided."""

from functools import cache

import pytest
import torch

pytest.importorskip("triton", reason="kernels need Triton")

from softspike.kernels.sampling import Form, Law, Resident, Tiled, Timing, score_samples
from softspike.kernels.settings import Settings, table

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N, B, D, d, J = 2, 5, 11, 19, 10  # no multiple of any tile
FORMS = (Form.PLAIN, Form.FIXED, Form.GAMMA)
LAWS = [Law(laplace, form) for laplace in (False, True) for form in FORMS] + [Law(False, Form.SPIKE)]


def scores_by(law, tiles, dtype):
    random = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=random).to(DEVICE)

    settings = table(
        [Settings(J, 0.01, 0.1, level=0.25, level_shape=3.0, level_rate=12.0, level_beta=1e-3)] * N, DEVICE
    )
    ones, zeros = torch.ones(1, 7, device=DEVICE), torch.zeros(N, dtype=torch.int32, device=DEVICE)
    clock = torch.full((4,), 5, dtype=torch.int32, device=DEVICE)
    time = Timing(clock, torch.arange(N, device=DEVICE) + (1 << 40), ones, zeros, ones, zeros)
    scores = torch.full((N, 12, B), torch.nan, device=DEVICE)
    heads, atoms, x = 0.3 * normal(N, B, law.n_heads * d), normal(N, D, d).to(dtype), normal(N, B, D)
    score_samples(law, heads, atoms, x, scores, settings, time, "ieee", tiles)
    return scores[:, :J]


@cache
def wanted_of(law):
    """By the other kernel, once for every division of work."""
    return scores_by(law, Tiled(4, 16), torch.float32)


@pytest.mark.parametrize("tiles", [Resident(4, 1), Resident(8, 2), Resident(4, 100)], ids=str)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_resident_atoms_give_the_same_scores(law, tiles):
    """Sums in another order: 1e-5."""
    wanted = wanted_of(law)
    assert wanted.isfinite().all()
    assert wanted.std() > 0
    torch.testing.assert_close(scores_by(law, tiles, torch.float32), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="Triton's interpreter multiplies bfloat16 numbers as if they were integers")
@pytest.mark.parametrize("tiles", [Tiled(4, 16), Resident(4, 2)], ids=str)
def test_half_as_many_bits_of_atoms(tiles):
    """Eight bits of each factor: the scores to 3 %."""
    law = LAWS[4]
    torch.testing.assert_close(scores_by(law, tiles, torch.bfloat16), wanted_of(law), rtol=3e-2, atol=3e-2)
