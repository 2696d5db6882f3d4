"""How gradients that are written out move their parameters: by the optimiser at the end, or layer by layer.

Products may use copies of the parameters in bfloat16. These follow, by the name `copies`: id of a parameter → its copy.
"""

from collections.abc import Mapping
from types import MappingProxyType
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

    def __init__(self, one: Step, copies: Mapping[int, Tensor] = MappingProxyType({})):
        self.one = one
        self.copied = [parameter.detach() for parameter in one.parameters if id(parameter) in copies]
        self.copies = [copies[id(parameter)] for parameter in one.parameters if id(parameter) in copies]

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
        if self.copies:
            torch._foreach_copy_(self.copies, self.copied)


class LayerByLayer:
    """SGD moves a layer as soon as its gradient is known, in memory that all layers share and the cache still holds."""

    def __init__(self, one: Step, copies: Mapping[int, Tensor] = MappingProxyType({})):
        self.optimizer, self.copies = one.optimizer, copies
        self.group_of = {id(p): group for group in one.optimizer.param_groups for p in group["params"]}
        most = {p.ndim: max(q.numel() for q in one.parameters if q.ndim == p.ndim) for p in one.parameters}
        self.rooms = {ndim: torch.empty(n) for ndim, n in most.items()}  # a weight and its bias arrive together

    def room(self, parameter: Tensor) -> Tensor:
        room = self.rooms[parameter.ndim]
        if self._in_one_pass(parameter):
            room = room.view(torch.bfloat16)
        return room[: parameter.numel()].view_as(parameter)

    def arrived(self, *parameters: Tensor) -> None:
        rest = [parameter for parameter in parameters if not self._in_one_pass(parameter)]
        for parameter in parameters:
            if self._in_one_pass(parameter):
                self._move_with_copy(parameter)
        if rest:
            self._move(rest)

    def finish(self) -> None: ...

    def _in_one_pass(self, parameter: Tensor) -> bool:
        """Whether the gradient comes in bfloat16, and moves the weight and its copy together."""
        group = self.group_of[id(parameter)]
        plain = group["momentum"] and not (group["dampening"] or group["maximize"])
        return bool(plain and parameter.ndim == 2 and id(parameter) in self.copies)

    def _move(self, parameters: list[Tensor]) -> None:
        group, state = self.group_of[id(parameters[0])], self.optimizer.state
        first = "momentum_buffer" not in state[parameters[0]]
        velocities = [self._velocity(parameter) for parameter in parameters] if group["momentum"] else []
        options = {name: group[name] for name in ("weight_decay", "momentum", "dampening", "nesterov", "maximize")}
        grads = [self.room(parameter) for parameter in parameters]
        _sgd(parameters, grads, velocities, lr=group["lr"], is_first_step=first, **options)
        for parameter in parameters:
            if id(parameter) in self.copies:
                self.copies[id(parameter)].copy_(parameter)

    def _move_with_copy(self, parameter: Tensor) -> None:
        from softspike.kernels.cpu.momentum import momentum_step_  # numba takes a second to load

        group, copy = self.group_of[id(parameter)], self.copies[id(parameter)]
        rate, inertia, decay = group["lr"], group["momentum"], group["weight_decay"]
        velocity, grad = self._velocity(parameter), self.room(parameter)
        momentum_step_(parameter, velocity, grad, copy, rate, inertia, decay, group["nesterov"])

    def _velocity(self, parameter: Tensor) -> Tensor:
        """What SGD remembers of the parameter, where SGD looks for it."""
        state = self.optimizer.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]


def descent_of(one: Step, copies: Mapping[int, Tensor] = MappingProxyType({})) -> Descent:
    """Layer by layer where nothing asks for all gradients at once: SGD, no clipping, a dictionary of any norms."""
    alone = _sgd is not None and type(one.optimizer) is SGD and one.recipe.clip_norm is None
    alone = alone and all(p.dtype == torch.float32 and p.is_contiguous() for p in one.parameters)
    kind = LayerByLayer if alone and type(one.coder.generator) is Dictionary else AtTheEnd
    return kind(one, copies)
