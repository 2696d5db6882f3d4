"""How gradients that are written out move their parameters: by the optimiser at the end, or layer by layer."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import SGD

from softspike.generator import Dictionary
from softspike.train.step import Step

__all__ = ["AtTheEnd", "Copies", "Descent", "LayerByLayer", "LowLayerByLayer", "descent_of"]

_sgd: Any = getattr(torch, "_fused_sgd_", None)  # what torch.optim.SGD calls, without its tables
Copies = Sequence[tuple[Tensor, Tensor]]  # parameters, and what a step computes with in their place, in bfloat16


class Descent(Protocol):
    """Where a step writes gradients, and whom it tells."""

    def room(self, parameter: Tensor) -> Tensor:
        """Memory for the gradient of this parameter."""

    def arrived(self, weight: Tensor) -> None:
        """The gradient of this weight is in its room, and nothing else of the step will read the weight."""

    def finish(self) -> None:
        """All gradients have arrived."""


class AtTheEnd:
    """Gradients stay with their parameters, where projections, clipping and any optimiser find them."""

    def __init__(self, one: Step, copies: Copies = ()):
        self.one, self.parameters, self.copies = one, [given for given, _ in copies], [copy for _, copy in copies]

    def room(self, parameter: Tensor) -> Tensor:
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        return parameter.grad

    def arrived(self, weight: Tensor) -> None: ...

    def finish(self) -> None:
        self.one.coder.before_step()
        if self.one.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.one.parameters, self.one.recipe.clip_norm)
        self.one.optimizer.step()
        if self.copies:
            torch._foreach_copy_(self.copies, self.parameters)


class LayerByLayer:
    """SGD moves a weight as soon as its gradient is known, in memory that all share and the cache still holds; biases,
    which are small, together at the end."""

    def __init__(self, one: Step):
        self.optimizer = one.optimizer
        self.group_of = {id(p): group for group in one.optimizer.param_groups for p in group["params"]}
        self.biases = [[p for p in group["params"] if p.ndim == 1] for group in one.optimizer.param_groups]
        weights = [p for p in one.parameters if p.ndim > 1]
        shared = torch.empty(max(p.numel() for p in weights))
        self.rooms = {id(p): shared[: p.numel()].view_as(p) for p in weights}
        self.rooms.update({id(p): torch.empty_like(p) for group in self.biases for p in group})

    def room(self, parameter: Tensor) -> Tensor:
        return self.rooms[id(parameter)]

    def arrived(self, weight: Tensor) -> None:
        self._move([weight])

    def finish(self) -> None:
        for biases in self.biases:
            if biases:
                self._move(biases)

    def momentum(self, parameter: Tensor) -> Tensor:
        """Where the optimiser keeps it; zeros before the first step."""
        state = self.optimizer.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]

    def _move(self, parameters: list[Tensor]) -> None:
        group = self.group_of[id(parameters[0])]
        first = group["momentum"] != 0 and "momentum_buffer" not in self.optimizer.state[parameters[0]]
        momenta = [self.momentum(parameter) for parameter in parameters] if group["momentum"] else []
        options = {name: group[name] for name in ("weight_decay", "momentum", "dampening", "nesterov", "maximize")}
        rooms = [self.rooms[id(parameter)] for parameter in parameters]
        _sgd(parameters, rooms, momenta, lr=group["lr"], is_first_step=first, **options)


class LowLayerByLayer(LayerByLayer):
    """The same where products are in bfloat16: one pass moves a weight and its copy, from a gradient in bfloat16.

    Nothing else may move the weights while steps are taken: the copies would not follow.
    """

    def __init__(self, one: Step, copies: Copies):
        from softspike.kernels.cpu.descent import descend_  # numba takes a second to load

        super().__init__(one)
        self.descend_ = descend_
        self.copies = {id(parameter): copy for parameter, copy in copies if parameter.ndim > 1}
        self.small = [(parameter, copy) for parameter, copy in copies if parameter.ndim == 1]
        shared = torch.empty(max(copy.numel() for copy in self.copies.values()), dtype=torch.bfloat16)
        self.rooms.update({key: shared[: copy.numel()].view_as(copy) for key, copy in self.copies.items()})

    def arrived(self, weight: Tensor) -> None:
        if (copy := self.copies.get(id(weight))) is None:
            return super().arrived(weight)
        group = self.group_of[id(weight)]
        constants = group["lr"], group["weight_decay"], group["momentum"], group["nesterov"]
        self.descend_(weight, self.momentum(weight), self.rooms[id(weight)], copy, *constants)

    def finish(self) -> None:
        super().finish()
        torch._foreach_copy_([copy for _, copy in self.small], [parameter for parameter, _ in self.small])


def descent_of(one: Step, copies: Copies = ()) -> Descent:
    """Layer by layer where nothing asks for all gradients at once: SGD, no clipping, a dictionary of any norms."""
    alone = _sgd is not None and type(one.optimizer) is SGD and one.recipe.clip_norm is None
    alone = alone and all(p.dtype == torch.float32 and p.is_contiguous() for p in one.parameters)
    if not (alone and type(one.coder.generator) is Dictionary):
        return AtTheEnd(one, copies)
    if not copies:
        return LayerByLayer(one)
    moved = {id(parameter) for parameter, _ in copies}
    groups = [group for group in one.optimizer.param_groups if any(id(p) in moved for p in group["params"])]
    plain = all(group["momentum"] and not group["dampening"] and not group["maximize"] for group in groups)
    return LowLayerByLayer(one, copies) if plain else AtTheEnd(one, copies)
