"""Which atoms look alike, on dictionaries where the answer is known."""

import pytest
import torch

from softspike.metric import likeness, likeness_order, nearest_atoms, pair_atoms


@pytest.fixture
def atoms():
    return torch.randn(23, 12, generator=torch.Generator().manual_seed(0)) * torch.linspace(0.1, 5, 23)[:, None]


@pytest.mark.parametrize("held", [2**24, 50, 1])
def test_nearest_atoms(atoms, monkeypatch, held):
    monkeypatch.setattr(likeness, "_PAIRS", held)
    atom, cosine = nearest_atoms(atoms, 4)
    plain = torch.nn.functional.cosine_similarity(atoms[:, None], atoms[None], dim=-1)
    size = plain.abs().fill_diagonal_(-1)
    expected = size.topk(4, dim=1)
    torch.testing.assert_close(cosine.abs(), expected.values, rtol=0, atol=1e-5)
    torch.testing.assert_close(cosine, plain.gather(1, atom), rtol=0, atol=1e-5)
    assert (atom != torch.arange(23)[:, None]).all()


def test_a_walk_visits_each_atom_once_and_always_goes_to_the_most_alike(atoms):
    order = likeness_order(atoms, start=7)
    assert order[0] == 7
    assert sorted(order.tolist()) == list(range(23))
    size = torch.nn.functional.cosine_similarity(atoms[:, None], atoms[None], dim=-1).abs()
    for place in range(22):
        left = order[place + 1 :]
        assert size[order[place], order[place + 1]] >= size[order[place], left].max() - 1e-5


def test_pairs_undo_a_shuffle_a_flip_and_a_scale(atoms):
    shuffle = torch.randperm(23, generator=torch.Generator().manual_seed(1))
    flips = torch.where(torch.arange(23) % 2 == 0, 1.0, -1.0)
    other = (atoms * flips[:, None] * 3)[shuffle]
    first, second, cosine = pair_atoms(atoms, other)
    assert torch.equal(shuffle[second], first)
    torch.testing.assert_close(cosine, flips[first], rtol=0, atol=1e-5)


def test_pairs_of_unequal_dictionaries_are_the_best_ones_first(atoms):
    first, second, cosine = pair_atoms(atoms, torch.cat([atoms[3:9], torch.zeros(1, 12)]))
    assert len(first) == 7
    assert len(set(first.tolist())) == len(set(second.tolist())) == 7
    torch.testing.assert_close(cosine[:6], torch.ones(6), rtol=0, atol=1e-5)
    assert (cosine.abs().diff() <= 1e-6).all()
    assert cosine[6] == 0
