"""What the variational methods are measured against: FISTA dictionary learning and sparse autoencoders."""

from collections.abc import Callable

from softspike.autoencoder import Autoencoder
from softspike.generator import Dictionary, UnitNormDictionary
from softspike.methods.plan import Built, Plan, adam_recipe
from softspike.solver import FistaCoder

__all__ = ["autoencoder", "fista"]


def fista(plan: Plan) -> Built:
    """MAP codes by FISTA, λ steered to the target count."""
    generator = Dictionary(plan.n_features, plan.n_components, frobenius=1e-3)
    coder = FistaCoder(generator, penalty=1.0, positive=plan.positive, target=plan.target_active)
    return Built(coder, adam_recipe(plan, 1e-3, 1e-2))


def autoencoder(kind: type[Autoencoder]) -> Callable[[Plan], Built]:
    """A one-layer autoencoder with the given activation, on unit-norm atoms."""

    def builder(plan: Plan) -> Built:
        generator = UnitNormDictionary(plan.n_features, plan.n_components)
        coder = kind(generator, plan.target_active, positive=plan.positive)
        return Built(coder, adam_recipe(plan, 3e-3, 3e-3))

    return builder
