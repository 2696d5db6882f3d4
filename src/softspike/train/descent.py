"""How gradients that are written out move their parameters: by the optimiser at the end, or layer by layer."""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import SGD

from softspike.generator import Dictionary
from softspike.layers.affine import weigh
from softspike.train.step import Step

__all__ = ["AtTheEnd", "Copies", "Descent", "LayerByLayer", "descent_of"]

_sgd: Any = getattr(torch, "_fused_sgd_", None)  # what torch.optim.SGD calls, without its tables
Copies = Sequence[tuple[Tensor, Tensor]]  # parameters, and what a step computes with in their place, in bfloat16


class Descent(Protocol):
    """Where a step leaves its gradients."""

    def room(self, bias: Tensor) -> Tensor:
        """Memory for the gradient of this bias."""

    def learn(self, weight: Tensor, grad: Tensor, inputs: Tensor, decay: float = 0.0) -> None:
        """The gradient of this weight is gᵀx + decay·w, and nothing else of the step will read the weight."""

    def finish(self) -> None:
        """All gradients are known."""


class AtTheEnd:
    """Gradients stay with their parameters, where projections, clipping and any optimiser find them."""

    def __init__(self, one: Step, copies: Copies = ()):
        self.one, self.parameters, self.copies = one, [given for given, _ in copies], [copy for _, copy in copies]

    def room(self, parameter: Tensor) -> Tensor:
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter)
        return parameter.grad

    def learn(self, weight: Tensor, grad: Tensor, inputs: Tensor, decay: float = 0.0) -> None:
        weigh(grad, inputs, self.room(weight))
        if decay:
            self.room(weight).add_(weight, alpha=decay)

    def finish(self) -> None:
        self.one.coder.before_step()
        if self.one.recipe.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.one.parameters, self.one.recipe.clip_norm)
        self.one.optimizer.step()
        if self.copies:
            torch._foreach_copy_(self.copies, self.parameters)


class LayerByLayer:
    """SGD moves a weight while its gradient is computed, tile by tile, and its copy with it; biases, which are small,
    together at the end.

    Nothing else may move the weights while steps are taken: the copies would not follow.
    """

    def __init__(self, one: Step, copies: Copies = ()):
        from softspike.kernels.cpu.descent import descend_  # numba takes a second to load
        from softspike.kernels.cpu.panels import room_for

        self.descend_, self.optimizer = descend_, one.optimizer
        self.group_of = {id(p): group for group in one.optimizer.param_groups for p in group["params"]}
        self.biases = [[p for p in group["params"] if p.ndim == 1] for group in one.optimizer.param_groups]
        self.rooms = {id(p): torch.empty_like(p) for group in self.biases for p in group}
        shapes = [p.shape for p in one.parameters if p.ndim > 1]
        self.work = room_for(one.recipe.batch_size, max(n for n, _ in shapes), max(m for _, m in shapes))
        self.copies = {id(parameter): copy for parameter, copy in copies if parameter.ndim > 1}
        self.small = [(parameter, copy) for parameter, copy in copies if parameter.ndim == 1]

    def room(self, bias: Tensor) -> Tensor:
        return self.rooms[id(bias)]

    def learn(self, weight: Tensor, grad: Tensor, inputs: Tensor, decay: float = 0.0) -> None:
        group = self.group_of[id(weight)]
        self.descend_(
            weight, self.momentum(weight), grad, inputs, self.copies.get(id(weight)),
            rate=group["lr"], decay=group["weight_decay"] + decay, kept=group["momentum"], nesterov=group["nesterov"],
            room=self.work,
        )  # fmt: skip

    def finish(self) -> None:
        for biases in self.biases:
            if biases:
                self._move(biases)
        if self.small:
            torch._foreach_copy_([copy for _, copy in self.small], [parameter for parameter, _ in self.small])

    def momentum(self, parameter: Tensor) -> Tensor | None:
        """Where the optimiser keeps it; zeros before the first step, None where it has none."""
        if not self.group_of[id(parameter)]["momentum"]:
            return None
        state = self.optimizer.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]

    def _move(self, biases: list[Tensor]) -> None:
        group = self.group_of[id(biases[0])]
        first = group["momentum"] != 0 and "momentum_buffer" not in self.optimizer.state[biases[0]]
        momenta = [self.momentum(bias) for bias in biases] if group["momentum"] else []
        options = {name: group[name] for name in ("weight_decay", "momentum", "dampening", "nesterov", "maximize")}
        rooms = [self.rooms[id(bias)] for bias in biases]
        _sgd(biases, rooms, momenta, lr=group["lr"], is_first_step=first, **options)


def descent_of(one: Step, copies: Copies = ()) -> Descent:
    """Layer by layer where nothing asks for all gradients at once: SGD, no clipping, a dictionary of any norms."""
    alone = _sgd is not None and type(one.optimizer) is SGD and one.recipe.clip_norm is None
    alone = alone and all(p.dtype == torch.float32 and p.is_contiguous() for p in one.parameters)
    alone = alone and not any(group["dampening"] or group["maximize"] for group in one.optimizer.param_groups)
    if not (alone and type(one.coder.generator) is Dictionary and (not copies or _pairs())):
        return AtTheEnd(one, copies)
    return LayerByLayer(one, copies)


def _pairs() -> bool:
    from softspike.kernels.cpu.tiles import PAIRS  # numba takes a second to load

    return PAIRS
