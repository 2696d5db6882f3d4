"""The FISTA baseline as a coder: lasso codes, the dictionary by gradient descent in the same loop."""

import torch
from torch import Generator, Tensor

from softspike.coder import Coder, Loss
from softspike.generator import LinearGenerator
from softspike.schedule import Constant, Schedule, Time
from softspike.solver.lasso import lasso

__all__ = ["FistaCoder"]


class FistaCoder(Coder):
    """z = argmin ½‖x − Az‖² + ω(step)·λ‖z‖₁; the loss for A is that of every other coder, at fixed z."""

    asks_host = True
    generator: LinearGenerator
    penalty: Tensor  # λ

    def __init__(
        self,
        generator: LinearGenerator,
        penalty: float = 20.0,
        warm_up: Schedule = Constant(1.0),
        tolerance: float = 1e-3,
        max_iterations: int = 500,
        positive: bool = False,
        target: float | None = None,
    ):
        super().__init__()
        self.generator, self.warm_up = generator, warm_up
        self.tolerance, self.max_iterations, self.positive = tolerance, max_iterations, positive
        self.target = target  # mean active count that training steers λ towards, or None to leave λ alone
        self.register_buffer("penalty", torch.tensor(float(penalty)))

    def solve(self, x: Tensor, penalty: Tensor | float, start: Tensor | None = None) -> Tensor:
        return lasso(
            x, self.generator.atoms.detach(), penalty, start=start, tolerance=self.tolerance,
            max_iterations=self.max_iterations, positive=self.positive,
        ).codes  # fmt: skip

    def loss(self, x: Tensor, step: Time, random: Generator | None = None) -> Loss:
        """mean over features of (x − Az)² plus the penalty on A, z solved for and held fixed."""
        z = self.solve(x, self.warm_up(step) * self.penalty)
        misfit = (x - self.generator(z)).square().mean()
        total = misfit + (2 / x.shape[-1]) * self.generator.penalty()
        active = (z != 0).sum(-1).to(x.dtype).mean()
        if self.target is not None:
            # A multiplicative controller: 1 % of the relative miss per step.
            self.penalty *= torch.exp(0.01 * (active / self.target - 1).clamp(-1, 1))
        return Loss(total, misfit.detach(), torch.zeros_like(misfit), active)

    def gauges(self) -> dict[str, Tensor]:
        """λ, which is the level of the proximal step's threshold in units of its step size."""
        return {"level": self.penalty}

    def code(self, x: Tensor) -> Tensor:
        return self.solve(x, self.penalty)

    def activation_probability(self, x: Tensor) -> Tensor:
        """A MAP code knows no doubt: 1 where active, 0 elsewhere."""
        return (self.code(x) != 0).to(x.dtype)

    @torch.no_grad()
    def calibrate(self, x: Tensor, mean_active: float, weights: Tensor | None = None) -> None:
        """Set λ, by bisection on its logarithm, so that codes of x have `mean_active` non-zeros on average."""
        share = torch.full_like(x[:, 0], 1 / len(x)) if weights is None else weights.to(x.dtype)
        largest = (x @ self.generator.atoms).abs().max().clamp_min(1e-30)
        low, high, z = largest * 1e-6, largest, None
        for _ in range(20):
            middle = (low * high).sqrt()
            z = self.solve(x, middle, start=z)
            if share @ (z != 0).sum(-1).to(x.dtype) > mean_active:
                low = middle
            else:
                high = middle
        self.penalty.copy_(high)
