"""When training has stopped making sense: one judgement for every way to train."""

from math import isfinite

from torch import Tensor, nn

from softspike.coder import Loss

__all__ = ["Diverged", "check_losses", "check_parameters", "lost", "lost_parameter"]

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


def check_losses(loss: Loss, totals: Tensor, done: int) -> None:
    """Raise Diverged with the first bad step of the last ones, whose losses are `totals`, or for what the last is.

    Called before anything is logged or saved, so what is saved is good.
    """
    finite, parts = totals.isfinite(), {name: float(value) for name, value in loss._asdict().items()}
    cause = lost(**parts)
    if not bool(finite.all()):
        first = done - len(totals) + 1 + int((~finite).nonzero()[0])
        now = cause if not isfinite(sum(parts.values())) else None
        raise Diverged(first, now or "the loss is not finite (for that step only)")
    if cause is not None:
        raise Diverged(done, cause)


def check_parameters(coder: nn.Module, done: int) -> None:
    """Raise Diverged where one is not finite."""
    cause = lost_parameter(coder)
    if cause is not None:
        raise Diverged(done, cause)
