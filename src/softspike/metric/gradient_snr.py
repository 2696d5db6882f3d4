"""The signal-to-noise ratio of gradients over repeated draws (Rainforth et al., 2018), in constant memory."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

__all__ = ["gradient_snr", "snr_floor"]


class _Moments:
    """Welford's running mean and sum of squared deviations, where the gradients live."""

    def __init__(self, size: int, device: torch.device):
        self.count = 0
        self.mean, self.squares = torch.zeros(2, size, dtype=torch.float64, device=device)

    def update(self, value: Tensor) -> None:
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self.squares += delta * (value - self.mean)

    def ratio(self, guard: float) -> Tensor:
        """|mean|/(std + guard): parameters without gradient have the ratio 0."""
        return self.mean.abs() / ((self.squares / max(self.count - 1, 1)).sqrt() + guard)


def gradient_snr(
    loss: Callable[[int], Tensor],
    parameters: Mapping[str, Sequence[Tensor]],
    n_passes: int = 1000,
    guards: Sequence[float] = (1e-9,),
) -> dict[str, tuple[float, ...]]:
    """mean over parameters of |E ∇L|/(σ(∇L) + guard), for each named group and guard; loss(pass) draws anew each time.

    Two numbers per parameter are kept, however many passes there are. The guard decides what parameters count for
    whose gradient is hardly any: with a large one they pull the mean to 0.
    """
    flat = [p for group in parameters.values() for p in group]
    sizes = [sum(p.numel() for p in group) for group in parameters.values()]
    moments = _Moments(sum(sizes), flat[0].device)
    for number in range(n_passes):
        gradients = torch.autograd.grad(loss(number), flat, allow_unused=True, materialize_grads=True)
        moments.update(torch.cat([gradient.flatten() for gradient in gradients]).double())
    ratios = [moments.ratio(guard).split(sizes) for guard in guards]
    return {name: tuple(float(parts[k].mean()) for parts in ratios) for k, name in enumerate(parameters)}


def snr_floor(n_passes: int) -> float:
    """√(2/πn): what n passes report on average for a parameter whose gradient is nothing but (Gaussian) noise."""
    return math.sqrt(2 / (math.pi * n_passes))
