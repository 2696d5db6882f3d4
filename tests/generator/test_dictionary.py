"""The linear generators: the map, the penalty, the constraint."""

import pytest
import torch

from softspike.generator import Dictionary, UnitNormDictionary

every_dictionary = pytest.mark.parametrize("build", [Dictionary, UnitNormDictionary])


@every_dictionary
def test_starts_with_unit_columns_and_is_linear(build: type[torch.nn.Module]) -> None:
    dictionary = build(6, 9)
    torch.testing.assert_close(dictionary.atoms.norm(dim=0), torch.ones(9))
    z = torch.randn(4, 3, 9)
    torch.testing.assert_close(dictionary(z), torch.einsum("fc,jbc->jbf", dictionary.atoms, z))


@every_dictionary
def test_start_is_a_function_of_the_generator(build: type[torch.nn.Module]) -> None:
    one, two, three = (build(6, 9, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(one.atoms, two.atoms)
    assert not torch.equal(one.atoms, three.atoms)


@pytest.mark.parametrize("weight", [0.0, 1e-4, 0.3])
def test_frobenius_penalty_and_its_gradient(weight: float) -> None:
    """κ‖A‖² and 2κA."""
    dictionary = Dictionary(6, 9, frobenius=weight).double()
    penalty, atoms = dictionary.penalty(), dictionary.atoms.detach()
    assert float(penalty.detach()) == pytest.approx(weight * float(torch.linalg.matrix_norm(atoms)) ** 2)
    penalty.backward()
    torch.testing.assert_close(dictionary.weight.grad, 2 * weight * atoms)


def test_free_dictionary_is_left_alone() -> None:
    dictionary = Dictionary(6, 9)
    with torch.no_grad():
        dictionary.weight.mul_(3)
    before = dictionary.atoms.detach().clone()
    dictionary.constrain()
    assert torch.equal(dictionary.atoms, before)


def test_constrained_columns_have_unit_norm_and_keep_their_direction() -> None:
    """Before `constrain` as after it; what it restores is the norm of the weight. A zero column stays zero."""
    dictionary = UnitNormDictionary(6, 9)
    moved = dictionary.weight.detach() * torch.linspace(0.01, 50, 9)
    moved[:, 4] = 0
    alive = (torch.arange(9) != 4).float()
    with torch.no_grad():
        dictionary.weight.copy_(moved)
    torch.testing.assert_close(dictionary.atoms.norm(dim=0), alive)
    dictionary.constrain()
    torch.testing.assert_close(dictionary.weight.norm(dim=0), alive)
    torch.testing.assert_close(dictionary.atoms, dictionary.weight)
    torch.testing.assert_close(torch.nn.functional.cosine_similarity(dictionary.atoms, moved, dim=0), alive)
    assert float(dictionary.penalty()) == 0


def test_gradient_of_unit_columns_is_tangent() -> None:
    dictionary = UnitNormDictionary(6, 9)
    dictionary(torch.randn(4, 3, 9)).square().sum().backward()
    grad, atoms = dictionary.weight.grad, dictionary.atoms.detach()
    assert grad.abs().max() > 0.1
    torch.testing.assert_close((grad * atoms).sum(0), torch.zeros(9), rtol=0, atol=1e-4)
