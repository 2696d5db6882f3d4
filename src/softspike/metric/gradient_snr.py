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

    def ratio(self) -> Tensor:
        """|mean|/(std + 1e-9): parameters without gradient have the ratio 0."""
        return self.mean.abs() / ((self.squares / max(self.count - 1, 1)).sqrt() + 1e-9)


def gradient_snr(
    loss: Callable[[int], Tensor], parameters: Mapping[str, Sequence[Tensor]], n_passes: int = 1000, n_parts: int = 1
) -> dict[str, float]:
    """mean over parameters of |E ∇L|/(σ(∇L) + 1e-9), for each named group; loss(number) draws anew each time.

    The gradient of a pass is the mean of those of `n_parts` calls. Two numbers per parameter are kept, however many
    passes there are.
    """
    flat = [p for group in parameters.values() for p in group]
    sizes = [sum(p.numel() for p in group) for group in parameters.values()]
    moments = _Moments(sum(sizes), flat[0].device)
    for number in range(n_passes):
        parts = [_gradient(loss(number * n_parts + part), flat) for part in range(n_parts)]
        moments.update(sum(parts[1:], parts[0]) / n_parts)
    return {name: float(part.mean()) for name, part in zip(parameters, moments.ratio().split(sizes), strict=True)}


def _gradient(loss: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """Of all parameters in a row, in double precision."""
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
    return torch.cat([gradient.flatten() for gradient in gradients]).double()


def snr_floor(n_passes: int) -> float:
    """√(2/πn): what n passes report on average for a parameter whose gradient is nothing but (Gaussian) noise."""
    return math.sqrt(2 / (math.pi * n_passes))
