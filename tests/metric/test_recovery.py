"""Recovery scores on cases with known answers."""

import pytest
import torch

from softspike.metric.recovery import (
    Matching,
    absolute_correlation,
    absolute_cosine,
    dictionary_recovery,
    latent_recovery,
    match,
    support_scores,
)


def test_match_beats_the_greedy_choice() -> None:
    """Greedy takes .9 and is left with 0; the best assignment is .8 + .7."""
    pairs = match(torch.tensor([[0.9, 0.8], [0.7, 0.0]]))
    assert dict(zip(pairs.found.tolist(), pairs.truth.tolist(), strict=True)) == {0: 1, 1: 0}


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_match_is_one_to_one_for_any_shape(shape: tuple[int, int]) -> None:
    pairs = match(torch.rand(shape))
    assert len(set(pairs.found.tolist())) == len(set(pairs.truth.tolist())) == 3


def test_permuted_scaled_and_flipped_truth_is_fully_recovered() -> None:
    truth = torch.randn(50, 6) * (torch.rand(50, 6) < 0.4)
    order = torch.randperm(6)
    found = truth[:, order] * torch.tensor([2.0, -1.0, 0.3, -5.0, 1.0, 7.0])
    assert latent_recovery(found, truth) == pytest.approx(1)
    pairs = match(absolute_correlation(found, truth))
    assert torch.equal(order[pairs.found], pairs.truth)
    assert support_scores(found, truth, pairs) == (1, 1, 1)
    atoms = torch.randn(4, 6)
    assert dictionary_recovery(atoms[:, order] * -3, atoms) == pytest.approx((1, 1))


def test_correlation_is_that_of_numpy() -> None:
    a, b = torch.randn(40, 3), torch.randn(40, 4)
    both = torch.cat([a, b], 1).double().T
    torch.testing.assert_close(absolute_correlation(a, b), torch.corrcoef(both)[:3, 3:].abs())


def test_constant_latents_and_zero_atoms_have_no_similarity() -> None:
    a = torch.randn(20, 2)
    a[:, 1] = 0.1
    assert absolute_correlation(a, a)[1].eq(0).all()
    atoms = torch.eye(3)
    atoms[:, 2] = 0
    assert absolute_cosine(atoms, torch.eye(3))[2].eq(0).all()


def test_sources_without_a_partner_count_as_lost() -> None:
    truth = torch.randn(30, 4)
    assert latent_recovery(truth[:, :2], truth) == pytest.approx(0.5)
    atoms = torch.eye(4)
    assert dictionary_recovery(atoms[:, :3], atoms) == pytest.approx((0.75, 0.75))


def test_share_counts_atoms_above_nine_tenths() -> None:
    """cos 60° and cos 0°: mean ¾, share ½."""
    found = torch.tensor([[0.5, 0.0], [3**0.5 / 2, 0.0], [0.0, 1.0]])
    truth = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    assert dictionary_recovery(found, truth) == pytest.approx((0.75, 0.5))


def test_support_scores_count_entries() -> None:
    """Three found, two of them right, four true: 2/3, 2/4 and 2·2/(3 + 4)."""
    truth = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    found = torch.tensor([[5.0, 0.0, 1.0], [0.0, 0.0, 2.0]])
    same = Matching(torch.arange(3), torch.arange(3))
    assert support_scores(found, truth, same) == pytest.approx((2 / 3, 2 / 4, 4 / 7))
    # A component without a partner can only be wrong, a source without one only missed.
    first = Matching(torch.tensor([0]), torch.tensor([0]))
    assert support_scores(found, truth, first) == pytest.approx((1 / 3, 1 / 4, 2 / 7))


def test_nothing_found_scores_zero() -> None:
    same = Matching(torch.arange(2), torch.arange(2))
    assert support_scores(torch.zeros(3, 2), torch.ones(3, 2), same) == (0, 0, 0)
    assert latent_recovery(torch.zeros(3, 2), torch.randn(3, 2)) == 0
