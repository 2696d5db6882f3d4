"""How many times the unknown atoms intervals are set with where codes leave next to nothing of the inputs."""

import pytest
import torch
from torch import Tensor

from softspike.unknown import Seen, _harder

D = 40


def energies(mean_over_median: float) -> Tensor:
    """Of 1,001 inputs: all alike but for a tenth, which brings the mean to so many medians."""
    energy = torch.ones(1001)
    energy[:100] += (mean_over_median - 1) * 1001 / 100
    return energy


@pytest.mark.parametrize(
    ("what", "left", "mean_over_median", "n_active", "expected"),
    [
        ("next to nothing, and all of it shows", 1e-5, 1.0, 0.1, 1.0),
        ("next to nothing, a part is hidden", 1e-5, 1.0, 6, 1.25),
        ("next to nothing, much is hidden", 1e-5, 1.0, 12, 2.0),
        ("next to nothing, a little of some", 1e-5, 1.1, 6, 1.6),
        ("next to nothing of most, much of a few", 5e-4, 6.0, 12, 8 / 6),
        ("… of very few", 5e-4, 100.0, 12, 0.8),
        ("nothing of most, much of very few", 1e-5, 100.0, 6, 1.25),
    ],
)
def test_by_what_codes_leave(what: str, left: float, mean_over_median: float, n_active: float, expected: float) -> None:
    """`left` is the median of ‖r‖² over the mean of ‖z‖²."""
    code = torch.zeros(1001, 64)
    active = torch.arange(1001 * 64).reshape(1001, 64) % 64 < n_active
    if n_active < 1:
        active = (torch.arange(1001) % round(1 / n_active) == 0)[:, None] & (torch.arange(64) == 0)
    code[active] = 1.0
    code *= (1 / left / code.square().sum(-1).mean()).sqrt()
    assert _harder(Seen(None, energies(mean_over_median), code), D) == pytest.approx(expected, rel=0.01), what
