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
    """A zero column stays zero."""
    dictionary = UnitNormDictionary(6, 9)
    moved = dictionary.weight.detach() * torch.linspace(0.01, 50, 9)
    moved[:, 4] = 0
    alive = (torch.arange(9) != 4).float()
    with torch.no_grad():
        dictionary.weight.copy_(moved)
    dictionary.constrain()
    torch.testing.assert_close(dictionary.atoms.norm(dim=0), alive)
    torch.testing.assert_close(torch.nn.functional.cosine_similarity(dictionary.atoms, moved, dim=0), alive)
    assert float(dictionary.penalty()) == 0


def test_projected_gradient_is_that_of_normalised_columns() -> None:
    """What autograd gives through w/‖w‖ at ‖w‖ = 1, and so tangent to the sphere."""
    dictionary, z = UnitNormDictionary(6, 9).double(), torch.randn(4, 3, 9, dtype=torch.float64)
    dictionary.constrain()  # unit norms to float64, not float32
    dictionary(z).square().sum().backward()
    dictionary.project_gradient()
    grad, free = dictionary.weight.grad, dictionary.weight.detach().clone().requires_grad_()
    (z @ (free / free.norm(dim=0)).T).square().sum().backward()
    assert grad.abs().max() > 0.1
    torch.testing.assert_close(grad, free.grad)
    torch.testing.assert_close((grad * dictionary.atoms.detach()).sum(0), torch.zeros(9).double(), rtol=0, atol=1e-12)
