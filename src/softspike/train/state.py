"""A training state as flat named tensors, and back: what a checkpoint holds."""

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

__all__ = ["below", "pack", "unpack"]


def pack(coder: nn.Module, optimizer: Optimizer) -> dict[str, Tensor]:
    """model.* and optimizer.<parameter number>.* as contiguous copies, free of any shared storage."""
    tensors = {f"model.{name}": value for name, value in coder.state_dict().items()}
    for number, slots in optimizer.state_dict()["state"].items():
        for key, value in slots.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{number}.{key}"] = value
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}


def unpack(tensors: dict[str, Tensor], coder: nn.Module, optimizer: Optimizer) -> None:
    """Put a packed state back, in place."""
    coder.load_state_dict(below(tensors, "model."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in below(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = value.clone()  # the optimiser keeps what it is given and works on it
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    _lay_out(optimizer)


def _lay_out(optimizer: Optimizer) -> None:
    """Moments in the memory format of their parameters, as they were: files hold tensors in row-major order."""
    for parameter, slots in optimizer.state.items():
        for key, value in slots.items():
            if isinstance(value, Tensor) and value.shape == parameter.shape and value.stride() != parameter.stride():
                slots[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def below(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Those whose names begin with the prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
