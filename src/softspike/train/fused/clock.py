"""Time on the device: the step, and every schedule as a table that the step looks up."""

from collections.abc import Sequence

import torch
from torch import Tensor

from softspike.schedule import Schedule

__all__ = ["Clock", "Lookup"]


class Lookup:
    """Schedules as rows of a table (distinct schedules, n_steps), and which replica follows which row."""

    def __init__(self, schedules: Sequence[Schedule], n_steps: int, device: torch.device | str):
        distinct = list(dict.fromkeys(schedules))
        self.values = torch.tensor([[s(step) for step in range(n_steps)] for s in distinct], device=device)
        self.row_of = torch.tensor([distinct.index(s) for s in schedules], dtype=torch.int32, device=device)


class Clock:
    """The number of the next step, for each of `ahead` steps launched together: reading it costs no launch."""

    def __init__(self, start: int, ahead: int, device: torch.device | str):
        # Sixteen bytes apart, so that every entry is as aligned as the first and kernels compile once.
        self._steps = (start + torch.arange(ahead, dtype=torch.int32, device=device))[:, None].repeat(1, 4)

    def __getitem__(self, number: int) -> Tensor:
        return self._steps[number]

    def advance(self, steps: int) -> None:
        self._steps += steps
