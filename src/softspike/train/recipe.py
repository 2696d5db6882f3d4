"""How a coder is trained: steps, batch, optimiser, and a learning-rate schedule per parameter group."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from softspike.schedule import Scaled, Schedule
from softspike.train.augment import AsItIs, Augmentation

__all__ = ["GroupRecipe", "Recipe"]

_FUSED = (SGD, Adam, AdamW)  # on a CPU one pass over the memory in place of four, or of ten


@dataclass(frozen=True)
class GroupRecipe:
    """The learning rate of one parameter group, a pure function of the step, and its optimiser options."""

    rate: Schedule
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """Everything the loop needs besides the coder, the data and the seed."""

    n_steps: int
    batch_size: int
    optimizer: Callable[..., Optimizer]
    groups: Mapping[str, GroupRecipe]  # keys as in Coder.parameter_groups
    clip_norm: float | None = None
    augment: Augmentation = field(default_factory=AsItIs)
    log_every: int = 50
    save_every: int = 1000

    def build(self, parameters: Mapping[str, list[nn.Parameter]]) -> Optimizer:
        """One optimiser over all groups; groups without parameters are left out."""
        groups = [
            {"params": parameters[name], "name": name, "lr": group.rate(0), **group.options}
            for name, group in self.groups.items()
            if parameters.get(name)
        ]
        fused = {"fused": True} if self.optimizer in _FUSED and _on_cpu(groups) else {}
        return self.optimizer(groups, lr=0.0, **fused)

    def slowed(self, factor: float) -> "Recipe":
        """The same with all learning rates multiplied by a factor."""
        groups = {name: replace(group, rate=Scaled(group.rate, factor)) for name, group in self.groups.items()}
        return replace(self, groups=groups)

    def set_rates(self, optimizer: Optimizer, step: int) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.groups[group["name"]].rate(step)


def _on_cpu(groups: list[dict[str, Any]]) -> bool:
    return all(parameter.device.type == "cpu" for group in groups for parameter in group["params"])
