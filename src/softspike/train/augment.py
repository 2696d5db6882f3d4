"""What is done to a batch before it is learned from: a pure function of (seed, step)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from softspike.layers import ImageShape, as_images, as_rows
from softspike.train.order import step_flips
from softspike.train.team import Team

__all__ = ["AsItIs", "Augmentation", "Mirrored"]


class Augmentation(ABC):
    """x (B/N, D) → x′ (B/N, D), this process's slice of a step's batch."""

    @abstractmethod
    def __call__(self, x: Tensor, seed: int, step: int, team: Team) -> Tensor: ...


@dataclass(frozen=True)
class AsItIs(Augmentation):
    """The batch as it is."""

    def __call__(self, x: Tensor, seed: int, step: int, team: Team) -> Tensor:
        return x


@dataclass(frozen=True)
class Mirrored(Augmentation):
    """Each image turned left to right with probability ½. The choice does not depend on the number of processes."""

    shape: ImageShape

    def __call__(self, x: Tensor, seed: int, step: int, team: Team) -> Tensor:
        chosen = team.share(step_flips(seed, step, len(x) * team.size)).to(x.device, non_blocking=True)
        images = as_images(x, self.shape)
        return as_rows(torch.where(chosen[:, None, None, None], images.flip(-1), images))
