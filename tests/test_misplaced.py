"""Atoms in a wrong place: never alone, a part of all others, or standing for two; they are named, and no others."""

import pytest
import torch
from torch import Tensor

from softspike.refit import Merged, Shared, Sheared


def codes_of(n: int, d: int, n_active: int, positive: bool, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(seed)
    chosen = torch.rand(n, d, generator=random).argsort(-1) < n_active
    values = torch.randn(n, d, generator=random) + 0.5
    return (values.abs() if positive else values) * chosen


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("ratio", [0.4, 1.0, -1.5])
def test_a_sheared_atom_is_named_with_its_companion_and_ratio(positive: bool, ratio: float) -> None:
    """Rows with source 7 use atom 2 as well, `ratio` times as much; found to 1e-5."""
    codes = codes_of(2000, 16, 2, positive)
    codes[:, 2] += ratio * codes[:, 7]
    (found,) = Sheared.of(codes)
    assert (found.atom, found.companion) == (7, 2)
    assert found.ratio == pytest.approx(ratio, abs=1e-5)
    assert found.sureness > 0.7


def test_none_among_independent_sources_nor_of_rare_ones() -> None:
    codes = codes_of(2000, 16, 2, True)
    assert Sheared.of(codes) == []
    rare = codes.clone()
    rare[15:, 7] = 0.0
    rare[:, 2] += 0.5 * rare[:, 7]
    assert Sheared.of(rare) == []


def test_of_two_that_name_each_other_one_is_kept() -> None:
    """Always on together: the first, which is alone as rarely as the other."""
    codes = codes_of(2000, 16, 2, True)
    codes[:, 2] = 0.5 * codes[:, 7]
    assert [(one.atom, one.companion) for one in Sheared.of(codes)] == [(2, 7)]


@pytest.mark.parametrize("positive", [False, True])
def test_what_all_others_have_a_part_of_is_named_with_the_parts(positive: bool) -> None:
    """Atom 5's coefficient is its own plus Σ vⱼzⱼ, so that nearly all rows use it; v is found to 1e-3, and on the
    codes without it there is nothing more to find."""
    codes = codes_of(3000, 20, 6, positive)
    parts = torch.linspace(-0.4, 0.4, 20)
    parts[5] = 0.0
    mixed = codes.clone()
    mixed[:, 5] += codes @ parts
    (found,) = Shared.of(mixed)
    assert found.atom == 5
    assert found.spared > 0.5
    torch.testing.assert_close(found.parts, parts, atol=1e-3, rtol=0)
    assert Shared.of(codes) == []


def test_an_atom_that_most_rows_use_by_themselves_is_left_alone() -> None:
    codes = codes_of(3000, 20, 4, True)
    codes[:, 5] = torch.rand(3000, generator=torch.Generator().manual_seed(2)) + 0.1
    assert Shared.of(codes) == []


@pytest.mark.parametrize("n_atoms", [1, 8])
def test_an_atom_that_is_the_only_one_in_use_has_a_part_of_none(n_atoms: int) -> None:
    codes = torch.zeros(100, n_atoms)
    codes[:, 0] = 1 + torch.arange(100.0)
    assert Shared.of(codes) == []


def test_a_merged_atom_is_split_and_the_idle_one_spared() -> None:
    """Atom 4 lies between two sources, ±0.3v away from them, and atom 11 is hardly used: cosine with v above .99."""
    random = torch.Generator().manual_seed(1)
    codes = codes_of(3000, 12, 2, False)
    codes[:, 11] *= 0.01
    v = torch.nn.functional.normalize(torch.randn(20, generator=random), dim=0)
    side = (torch.rand(3000, generator=random) < 0.5) * 2.0 - 1
    left = 0.3 * (side * codes[:, 4])[:, None] * v + 0.01 * torch.randn(3000, 20, generator=random)
    (found,) = Merged.of(codes, left)
    assert (found.atom, found.spare) == (4, 11)
    assert float(torch.nn.functional.cosine_similarity(found.shift, v, dim=0).abs()) > 0.99
    assert float(found.shift.norm()) == pytest.approx(0.3, rel=0.05)


def test_noise_alone_splits_nothing() -> None:
    codes = codes_of(3000, 12, 2, False)
    left = torch.randn(3000, 20, generator=torch.Generator().manual_seed(2))
    assert Merged.of(codes, left) == []
    assert Merged.of(codes, torch.zeros(3000, 20)) == []
