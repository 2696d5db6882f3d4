"""The names. Strings end here: each is a function from a plan to a composed coder and its recipe."""

import copy
import difflib
from collections.abc import Callable

import torch

from softspike.autoencoder import BatchTopKAutoencoder, JumpReLUAutoencoder, TopKAutoencoder
from softspike.coder import Coder
from softspike.methods.baselines import autoencoder, fista
from softspike.methods.ours import hard_gaussian
from softspike.methods.paper import gaussian, laplacian, plain, spike_and_slab, thresholded
from softspike.methods.plan import Built, Plan, adam_recipe
from softspike.threshold import CentredSoft, ShiftedSoft

__all__ = [
    "AUTOENCODERS",
    "DEEP_METHODS",
    "DENSE_METHODS",
    "METHODS",
    "POSITIVE_METHODS",
    "SAMPLING_METHODS",
    "build",
    "composed",
    "method_named",
]

_SAMPLING: dict[str, Callable[[Plan], Built]] = {
    "gaussian": plain(gaussian),
    "laplacian": plain(laplacian),
    "spike-and-slab": plain(spike_and_slab),
    "thresholded-gaussian": thresholded(gaussian, ShiftedSoft),
    "thresholded-gaussian-gamma": thresholded(gaussian, ShiftedSoft, gamma=True),
    "thresholded-laplacian": thresholded(laplacian, ShiftedSoft),
    "thresholded-laplacian-gamma": thresholded(laplacian, ShiftedSoft, gamma=True),
    "centred-gaussian": thresholded(gaussian, CentredSoft),
    "centred-laplacian": thresholded(laplacian, CentredSoft),
}
_AUTOENCODERS: dict[str, Callable[[Plan], Built]] = {
    "topk": autoencoder(TopKAutoencoder),
    "batchtopk": autoencoder(BatchTopKAutoencoder),
    "jumprelu": autoencoder(JumpReLUAutoencoder),
}
METHODS: dict[str, Callable[[Plan], Built]] = {
    "hard-gaussian": hard_gaussian,
    **_SAMPLING,
    "fista": fista,
    **_AUTOENCODERS,
}
AUTOENCODERS = frozenset(_AUTOENCODERS)
SAMPLING_METHODS = frozenset(_SAMPLING)
DEEP_METHODS = SAMPLING_METHODS  # they take any generator; the others unroll, pursue or start from a dictionary
DENSE_METHODS = frozenset({"gaussian", "laplacian"})  # codes without zeros
POSITIVE_METHODS = AUTOENCODERS | {"hard-gaussian", "fista"}


def method_named(name: str, positive: bool = False, deep: bool = False) -> Callable[[Plan], Built]:
    """The builder of that name; an unknown name is answered with the nearest known one."""
    if name in METHODS:
        if deep and name not in DEEP_METHODS:
            can = ", ".join(sorted(DEEP_METHODS))
            raise ValueError(
                f"method {name!r} needs a dictionary, but a deep generator was asked for; use one of: {can}"
            )
        if positive and name not in POSITIVE_METHODS:
            can = ", ".join(sorted(POSITIVE_METHODS))
            raise ValueError(f"positive is True, but the codes of method {name!r} are signed; use one of: {can}")
        return METHODS[name]
    near = difflib.get_close_matches(str(name), METHODS, n=1, cutoff=0.0)
    raise ValueError(f"method is {name!r}, which is unknown; did you mean {near[0]!r}? Known: {', '.join(METHODS)}")


def composed(coder: Coder) -> Callable[[Plan], Built]:
    """A builder from a model composed by hand: a fresh copy of it each time, trained by Adam."""

    def builder(plan: Plan) -> Built:
        generator = coder.generator
        given, needed = (generator.n_features, generator.n_components), (plan.n_features, plan.n_components)
        if given != needed:
            raise ValueError(
                f"the composed model has (n_features, n_components) = {given}, expected {needed}; "
                "compose it for this data and give n_components to match"
            )
        return Built(copy.deepcopy(coder), adam_recipe(plan, 1e-3, 1e-2))

    return builder


def build(method: Callable[[Plan], Built], plan: Plan, seed: int) -> Built:
    """Call the builder with its own stream of random numbers, leaving the caller's untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return method(plan)
