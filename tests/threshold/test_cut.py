"""The cut leaves exactly as many components active as were asked for."""

import pytest
import torch

from softspike.threshold.cut import level_for_count, nearest_level_for_count


@pytest.mark.parametrize(("n", "d"), [(1, 8), (5, 3), (40, 24)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_the_mean_count_is_met(n, d, share):
    """Of distinct scores, exactly the whole number of entries that the mean asks for lies above the cut."""
    scores = torch.rand(n, d, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    asked = int(share * n * d)
    assert int((scores > level_for_count(scores, asked / n)).sum()) == asked


@pytest.mark.parametrize("share", [0.001, 0.1, 0.45, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_the_cut_of_all_scores_in_order(share, weighted, sparse):
    """Of 64,000 scores, not all of which are sorted, against sorting all: the same number."""
    random = torch.Generator().manual_seed(0)
    scores = torch.rand(1000, 64, generator=random) * (torch.rand(1000, 64, generator=random) < (0.2 if sparse else 1))
    weights = torch.rand(1000, generator=random, dtype=torch.float64) if weighted else torch.ones(1000).double()
    ordered, index = scores.flatten().sort(descending=True)
    asked = share * 64 * (1 + 1e-9)  # so that rounding does not decide
    over = int(((weights / weights.sum()).repeat_interleave(64)[index].cumsum(0) > asked).to(torch.uint8).argmax())
    wanted = ordered[over].lerp(ordered[over - 1], 0.5)
    assert level_for_count(scores, asked, weights / weights.sum() if weighted else None) == wanted


def test_a_cut_above_all_scores_is_well_above_them():
    scores = torch.tensor([[0.9, 0.8], [0.7, 0.6]])
    assert float(level_for_count(scores, 0.2)) == pytest.approx(1.5 * 0.9)
    assert float(level_for_count(-scores, 0.2)) > -0.6


def test_weights_say_which_rows_count():
    scores = torch.tensor([[0.9, 0.8, 0.1], [0.7, 0.6, 0.5]])
    weights = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert int((scores[1] > level_for_count(scores, 2.0, weights)).sum()) == 2


@pytest.mark.parametrize(("asked", "met"), [(0.4, 0), (1.1, 0), (1.9, 3), (3.0, 3), (3.4, 3), (3.6, 4), (5.0, 5)])
def test_a_tie_falls_on_the_nearer_side(asked, met):
    """Three probabilities at their limit: 0 or 3 of them lie above a cut, never 1 or 2."""
    scores = torch.tensor([[1.0, 0.5, 1.0, 0.25, 1.0]] * 2)
    for weights in (None, torch.tensor([0.25, 0.75])):
        count = (scores > nearest_level_for_count(scores, asked, weights)).sum(1)
        assert count.tolist() == [met, met]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_of_distinct_scores_the_two_cuts_are_one(share):
    scores = torch.rand(40, 24, generator=torch.Generator().manual_seed(0))
    asked = int(share * scores.numel()) / 40
    assert nearest_level_for_count(scores, asked) == level_for_count(scores, asked)


def test_scores_that_are_no_numbers_are_no_error():
    """Of a model that has diverged: that is found where codes are judged."""
    for bad in (torch.nan, -torch.inf):
        level_for_count(torch.full((50, 8), bad), 2.0)
