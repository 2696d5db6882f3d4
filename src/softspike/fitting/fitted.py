"""A coder with all that training it needs, and that state as named tensors, there and back."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.optim import Optimizer

from softspike.coder import Coder
from softspike.data import Standardiser
from softspike.methods import Built, Plan, build
from softspike.train import Precision, Recipe, automatic_precision, pack, unpack
from softspike.train.state import below

__all__ = ["Checkpoint", "Fitted", "check_size", "go_on", "prepare", "restore"]


class Checkpoint(NamedTuple):
    step: int
    tensors: dict[str, Tensor]


class Fitted(NamedTuple):
    coder: Coder
    standardiser: Standardiser
    recipe: Recipe
    optimizer: Optimizer
    precision: Precision

    def tensors(self) -> dict[str, Tensor]:
        """The whole state as named tensors: coder, optimiser, standardiser, and the scale of a scaled loss."""
        own = {f"standardiser.{name}": value for name, value in self.standardiser.state_dict().items()}
        scaling = {f"precision.{name}": value for name, value in self.precision.state().items()}
        return {**pack(self.coder, self.optimizer), **own, **scaling}


def prepare(
    method: Callable[[Plan], Built],
    plan: Plan,
    seed: int,
    device: torch.device,
    standardiser: Standardiser,
    precision: Precision | None = None,
) -> Fitted:
    """An untrained coder with its optimiser and a standardiser of its own, on its device; a precision of None is the
    one that suits both."""
    coder, recipe = build(method, plan, seed)
    coder.to(device).eval()
    precision = automatic_precision(coder.generator, device) if precision is None else precision
    return Fitted(coder, deepcopy(standardiser).to(device), recipe, recipe.build(coder.parameter_groups()), precision)


def check_size(plan: Plan, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError where a model of this plan is larger than the tensors that are to fill it: nothing is built."""
    stored = sum(value.numel() for value in tensors.values())
    needed = plan.n_components * (plan.n_features if plan.networks is None else 1)
    if max(needed, plan.n_features, plan.encoder_steps, plan.correction_rounds) > stored:
        raise ValueError(f"the configuration asks for at least {needed} numbers, the file holds {stored}")


def go_on(fitted: Fitted, resume: Checkpoint) -> None:
    """Put the state of a checkpoint back; ValueError where it is of another model."""
    try:
        restore(fitted, resume.tensors)
    except (KeyError, ValueError, RuntimeError) as error:
        why = " ".join(str(error).split())
        raise ValueError(
            f"the checkpoint of step {resume.step} is not one of this model ({why}); train again"
        ) from error


def restore(fitted: Fitted, tensors: dict[str, Tensor]) -> None:
    """Put the tensors of a checkpoint or of a finished model back, in place."""
    unpack(tensors, fitted.coder, fitted.optimizer)
    fitted.standardiser.load_state_dict(below(tensors, "standardiser."))
    fitted.precision.restore(below(tensors, "precision."))
