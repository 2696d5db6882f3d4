"""The cut leaves exactly as many components active as were asked for."""

import pytest
import torch

from softspike.threshold.cut import level_for_count


@pytest.mark.parametrize(("n", "d"), [(1, 8), (5, 3), (40, 24)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_the_mean_count_is_met(n, d, share):
    """Of distinct scores, exactly the whole number of entries that the mean asks for lies above the cut."""
    scores = torch.rand(n, d, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    asked = int(share * n * d)
    assert int((scores > level_for_count(scores, asked / n)).sum()) == asked


def test_weights_say_which_rows_count():
    scores = torch.tensor([[0.9, 0.8, 0.1], [0.7, 0.6, 0.5]])
    weights = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert int((scores[1] > level_for_count(scores, 2.0, weights)).sum()) == 2
