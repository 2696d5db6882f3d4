"""How gradients that are written out move their parameters: by the optimiser at the end, or layer by layer."""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import SGD

from softspike.generator import Dictionary
from softspike.train.step import Step

__all__ = ["AtTheEnd", "Descent", "LayerByLayer", "descent_of"]

_sgd: Any = getattr(torch, "_fused_sgd_", None)  # what torch.optim.SGD calls, without its tables


class Descent(Protocol):
    """Where a step writes gradients, and whom it tells."""

    def room(self, parameter: Tensor) -> Tensor:
        """Memory for the gradient of this parameter."""

    def arrived(self, *parameters: Tensor) -> None:
        """The gradients of these are in their rooms, and nothing else of the step will read the parameters."""

    def finish(self) -> None:
        """All gradients have arrived."""


class AtTheEnd:
    """Gradients stay with their parameters, where projections, clipping and any optimiser find them."""

    def __init__(self, one: Step):
        self.one = one

    def room(self, parameter: Tensor) -> Tensor:
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        return parameter.grad

    def arrived(self, *parameters: Tensor) -> None: ...

    def finish(self) -> None:
        self.one.coder.before_step()
        if self.one.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.one.parameters, self.one.recipe.clip_norm)
        self.one.optimizer.step()


class LayerByLayer:
    """SGD moves a layer as soon as its gradient is known, in memory that all layers share and the cache still holds."""

    def __init__(self, one: Step):
        self.optimizer = one.optimizer
        self.group_of = {id(p): group for group in one.optimizer.param_groups for p in group["params"]}
        most = {p.ndim: max(q.numel() for q in one.parameters if q.ndim == p.ndim) for p in one.parameters}
        self.rooms = {ndim: torch.empty(n) for ndim, n in most.items()}  # a weight and its bias arrive together

    def room(self, parameter: Tensor) -> Tensor:
        return self.rooms[parameter.ndim][: parameter.numel()].view_as(parameter)

    def arrived(self, *parameters: Tensor) -> None:
        group, state = self.group_of[id(parameters[0])], self.optimizer.state
        momenta, first = [], False
        if group["momentum"]:
            first = "momentum_buffer" not in state[parameters[0]]
            for parameter in parameters if first else ():
                state[parameter]["momentum_buffer"] = torch.empty_like(parameter)
            momenta = [state[parameter]["momentum_buffer"] for parameter in parameters]
        options = {name: group[name] for name in ("weight_decay", "momentum", "dampening", "nesterov", "maximize")}
        _sgd(
            list(parameters),
            [self.room(p) for p in parameters],
            momenta,
            lr=group["lr"],
            is_first_step=first,
            **options,
        )

    def finish(self) -> None: ...


def descent_of(one: Step) -> Descent:
    """Layer by layer where nothing asks for all gradients at once: SGD, no clipping, a dictionary of any norms."""
    alone = _sgd is not None and type(one.optimizer) is SGD and one.recipe.clip_norm is None
    alone = alone and all(p.dtype == torch.float32 and p.is_contiguous() for p in one.parameters)
    return LayerByLayer(one) if alone and type(one.coder.generator) is Dictionary else AtTheEnd(one)
