"""Pure functions of the training step: learning rates, warm-ups, temperatures. A checkpoint's step says all of them.

What a model reads inside its loss (`Constant`, `Ramp`, `Exponential`) also takes the step as a number on the device:
a recorded step is launched without knowing which one it is.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from torch import Tensor

__all__ = ["Constant", "Exponential", "OneCycle", "Ramp", "Scaled", "Schedule", "StepDecay", "Time"]

Time = int | Tensor


class Schedule(ABC):
    """value = schedule(step), with `final` the value it settles at."""

    @abstractmethod
    def __call__(self, step: Any) -> Any: ...

    @property
    @abstractmethod
    def final(self) -> float: ...


@dataclass(frozen=True)
class Constant(Schedule):
    """The same value at every step."""

    value: float

    def __call__(self, step: Time) -> float:
        return self.value

    @property
    def final(self) -> float:
        return self.value


@dataclass(frozen=True)
class OneCycle(Schedule):
    """Linear from peak/25 to the peak over the first share of the steps, then cosine down to `end`."""

    peak: float
    n_steps: int
    rise: float = 0.05
    start_factor: float = 1 / 25
    end: float = 4e-8

    def __call__(self, step: int) -> float:
        top = max(self.rise * self.n_steps - 1, 1e-9)
        start = self.peak * self.start_factor
        if step <= top:
            return start + (self.peak - start) * step / top
        progress = min((step - top) / max(self.n_steps - 1 - top, 1e-9), 1.0)
        return self.end + (self.peak - self.end) * (1 + math.cos(math.pi * progress)) / 2

    @property
    def final(self) -> float:
        return self.end


@dataclass(frozen=True)
class StepDecay(Schedule):
    """value·factor^(step // period): the published dictionary rate, 0.5 × 0.99 per epoch."""

    value: float
    factor: float
    period: int

    def __call__(self, step: int) -> float:
        return self.value * self.factor ** (step // self.period)

    @property
    def final(self) -> float:
        return 0.0 if self.factor < 1 else self.value


@dataclass(frozen=True)
class Exponential(Schedule):
    """max(value·factor^step, floor): the temperature τ."""

    value: float
    factor: float
    floor: float

    def __call__(self, step: Any) -> Any:
        return _at_least(self.value * self.factor**step, self.floor)

    @property
    def final(self) -> float:
        return self.floor


@dataclass(frozen=True)
class Ramp(Schedule):
    """min(start + slope·max(step − delay, 0), end): the warm-up ω."""

    start: float
    slope: float
    delay: int = 0
    end: float = 1.0

    def __call__(self, step: Any) -> Any:
        return _at_most(self.start + self.slope * _at_least(step - self.delay, 0), self.end)

    @property
    def final(self) -> float:
        return self.end


@dataclass(frozen=True)
class Scaled(Schedule):
    """factor·schedule(step)."""

    schedule: Schedule
    factor: float

    def __call__(self, step: int) -> float:
        return self.factor * self.schedule(step)

    @property
    def final(self) -> float:
        return self.factor * self.schedule.final


def _at_least(value: Any, low: float) -> Any:
    return value.clamp_min(low) if isinstance(value, Tensor) else max(value, low)


def _at_most(value: Any, high: float) -> Any:
    return value.clamp_max(high) if isinstance(value, Tensor) else min(value, high)
