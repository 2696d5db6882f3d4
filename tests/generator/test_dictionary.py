"""The linear generators: the map, the penalty, the constraint."""

import pytest
import torch

from softspike.generator import Dictionary, UnitNormDictionary

every_dictionary = pytest.mark.parametrize("dictionary", [Dictionary(6, 9), UnitNormDictionary(6, 9)], ids=["free", "unit"])


@every_dictionary
def test_starts_with_unit_columns_and_is_linear(dictionary: torch.nn.Module) -> None:
    torch.testing.assert_close(dictionary.atoms.norm(dim=0), torch.ones(9))
    z = torch.randn(4, 3, 9)
    torch.testing.assert_close(dictionary(z), torch.einsum("fc,jbc->jbf", dictionary.atoms, z))


@every_dictionary
def test_start_is_a_function_of_the_generator(dictionary: torch.nn.Module) -> None:
    one, two, three = (type(dictionary)(6, 9, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.atoms, two.atoms)
    assert not torch.equal(one.atoms, three.atoms)


@pytest.mark.parametrize("weight", [0.0, 1e-4, 0.3])
def test_frobenius_penalty_and_its_gradient(weight: float) -> None:
    """κ‖A‖² and 2κA."""
    dictionary = Dictionary(6, 9, frobenius=weight).double()
    penalty = dictionary.penalty()
    assert float(penalty.detach()) == pytest.approx(weight * float(torch.linalg.matrix_norm(dictionary.atoms.detach())) ** 2)
    penalty.backward()
    torch.testing.assert_close(dictionary.atoms.grad, 2 * weight * dictionary.atoms.detach())


def test_free_dictionary_is_left_alone() -> None:
    dictionary = Dictionary(6, 9)
    with torch.no_grad():
        dictionary.atoms.mul_(3)
    before = dictionary.atoms.detach().clone()
    dictionary.constrain()
    assert torch.equal(dictionary.atoms, before)


def test_constrained_columns_have_unit_norm_and_keep_their_direction() -> None:
    dictionary = UnitNormDictionary(6, 9)
    moved = dictionary.atoms.detach() * torch.linspace(0.01, 50, 9)
    moved[:, 4] = 0
    with torch.no_grad():
        dictionary.atoms.copy_(moved)
    dictionary.constrain()
    alive = torch.arange(9) != 4
    torch.testing.assert_close(dictionary.atoms.norm(dim=0), alive.float())
    torch.testing.assert_close(torch.nn.functional.cosine_similarity(dictionary.atoms, moved, dim=0), alive.float())
    assert dictionary.atoms.requires_grad
    assert dictionary.atoms.grad_fn is None
    assert float(dictionary.penalty()) == 0
