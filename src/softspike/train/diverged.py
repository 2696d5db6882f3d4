"""When training has stopped making sense: one judgement for every way to train."""

from math import isfinite

from torch import nn

__all__ = ["Diverged", "lost", "lost_parameter"]

# Standardised data has a variance of 1 per feature: a loss beyond this has nothing to do with it any more.
_LARGEST_LOSS = 1e6


class Diverged(RuntimeError):
    """Training stopped making sense: says at which step and why, and what is left of it."""

    def __init__(self, step: int, cause: str, left: str = ""):
        remedy = "lower the learning rate (a new run, in another folder) or check the data's scale"
        super().__init__("; ".join(filter(None, [f"training diverged at step {step}: {cause}", left, remedy])))
        self.step, self.cause, self.left = step, cause, left


def lost(**parts: float) -> str | None:
    """Why a loss with these parts (`misfit`, `total`, …) is one of divergence, or None."""
    bad = [name for name, value in parts.items() if not isfinite(value)]
    if bad:
        return f"the loss is not finite ({', '.join(bad)})"
    for name, words in (("misfit", "reconstruction error per feature"), ("total", "loss")):
        if parts[name] > _LARGEST_LOSS:
            return f"the {words} reached {parts[name]:.3g}"
    return None


def lost_parameter(coder: nn.Module) -> str | None:
    """The same of a coder's parameters."""
    for name, parameter in coder.named_parameters():
        if not bool(parameter.detach().isfinite().all()):
            return f"the parameter {name} is not finite"
    return None
