"""Learning from a stream, a batch at a time: mean, scale and cut follow the data as it passes."""

import warnings
from dataclasses import replace

import torch
from torch import Tensor

from softspike.data import Rows, RunningMoments, Standardiser, TensorRows
from softspike.fitting import Fitted
from softspike.train import train

__all__ = ["Stream"]

# The cut remembers at most fifty batches.
_LEAST_PULL = 0.02


class Stream:
    """Goes on with a coder from the step it has reached; `n_seen` rows stand behind its standardiser."""

    def __init__(self, fitted: Fitted, target_active: float, seed: int, step: int = 0, n_seen: int = 0):
        self.fitted, self.target_active, self.seed, self.step = fitted, target_active, seed, step
        self.moments = _moments(fitted.standardiser, n_seen)

    @property
    def n_seen(self) -> int:
        return self.moments.count

    def learn(self, rows: Rows, batch_size: int) -> None:
        """One pass over the rows in their order, a step per `batch_size` of them."""
        for first in range(0, len(rows), batch_size):
            if self.step == self.fitted.recipe.n_steps:
                warnings.warn(
                    f"all {self.step} steps of the learning-rate schedule are done, so further batches change little; "
                    "give a larger max_steps for a longer stream",
                    stacklevel=3,
                )
            self._learn(rows.take(torch.arange(first, min(first + batch_size, len(rows)))))

    def _learn(self, batch: Tensor) -> None:
        coder, standardiser, recipe, optimizer = self.fitted
        self.moments.update(batch)
        standardiser.load_state_dict(Standardiser.from_moments(self.moments).state_dict())
        device = standardiser.mean.device
        x = standardiser(batch.to(device))
        # Before the step: the cut is placed on rows not yet learned from.
        coder.calibrate(x, self.target_active, pull=max(1 / (self.step + 1), _LEAST_PULL))
        one = replace(recipe, n_steps=self.step + 1, batch_size=len(x), save_every=2**62)
        train(coder, TensorRows(x), one, seed=self.seed, device=device, optimizer=optimizer, start=self.step)
        self.step += 1


def _moments(standardiser: Standardiser, n_seen: int) -> RunningMoments:
    """The moments that this standardiser was made from. Its one scale is the mean variance, and merging keeps that."""
    moments = RunningMoments(len(standardiser.mean))
    if n_seen:
        moments.count, moments.mean = n_seen, standardiser.mean.double().cpu()
        moments.squares = (n_seen * standardiser.scale.double().square().cpu()).expand_as(moments.mean)
    return moments
