"""Learning from a stream, a batch at a time: mean and scale follow it, the cut is placed when codes are wanted."""

from collections import deque
from dataclasses import replace

import torch
from torch import Tensor

from softspike.data import Rows, RunningMoments, Standardiser, TensorRows
from softspike.fitting.fitted import Fitted
from softspike.notice import notice
from softspike.train import train

__all__ = ["Stream"]

# The cut is placed on the latest rows: enough for a mean count within 2 %, at most 64 MiB of them.
_RECENT_ROWS, _RECENT_NUMBERS = 4096, 2**24
_FEW_ROWS = 50


class Stream:
    """Goes on with a coder from the step it has reached; `n_seen` rows stand behind its standardiser."""

    def __init__(
        self, fitted: Fitted, target_active: float, seed: int, step: int = 0, n_seen: int = 0, centred: bool = True
    ):
        self.fitted, self.target_active, self.seed, self.step = fitted, target_active, seed, step
        self.centred = centred
        self.moments = _moments(fitted.standardiser, n_seen)
        self.recent: deque[Tensor] = deque()  # batches as they came
        self.settled = True

    @property
    def n_seen(self) -> int:
        return self.moments.count

    def learn(self, rows: Rows, batch_size: int) -> None:
        """One pass over the rows in their order, a step per `batch_size` of them."""
        for first in range(0, len(rows), batch_size):
            if self.step == self.fitted.recipe.n_steps:
                notice(
                    f"all {self.step} steps of the learning-rate schedule are done, so further batches change little; "
                    "give a larger max_steps for a longer stream"
                )
            batch = rows.take(torch.arange(first, min(first + batch_size, len(rows))))
            self._remember(batch)
            self._learn(batch)

    def settle(self) -> None:
        """Place the cut for the model as it is now. The level moves with every step, so an older cut would miss it."""
        if not self.settled:
            coder, standardiser = self.fitted.coder, self.fitted.standardiser
            x = standardiser(torch.cat(list(self.recent)).to(standardiser.mean.device))
            coder.calibrate(x, self.target_active)
            self.settled = True
            if coder.counts_by_rows and len(x) < _FEW_ROWS:
                some = "1 row" if len(x) == 1 else f"{len(x)} rows"
                notice(
                    f"the number of active components is set on {some}, all that was learned from; it means little "
                    f"before {_FEW_ROWS}: give partial_fit more"
                )

    def _learn(self, batch: Tensor) -> None:
        coder, standardiser, recipe, optimizer, precision = self.fitted
        self.moments.update(batch)
        if not coder.generator.gives_shares:  # such data is left as it is
            standardiser.load_state_dict(Standardiser.from_moments(self.moments, centred=self.centred).state_dict())
        device = standardiser.mean.device
        x = standardiser(batch.to(device))
        one = replace(recipe, n_steps=self.step + 1, batch_size=len(x), save_every=2**62)
        train(
            coder, TensorRows(x), one, seed=self.seed, device=device, optimizer=optimizer, start=self.step,
            precision=precision,
        )  # fmt: skip
        self.step += 1
        self.settled = False

    def _remember(self, batch: Tensor) -> None:
        """Keep the batch; forget batches that are not among the latest rows."""
        most = max(min(_RECENT_ROWS, _RECENT_NUMBERS // batch.shape[1]), 1)
        self.recent.append(batch[-most:])
        while sum(map(len, self.recent)) - len(self.recent[0]) >= most:
            self.recent.popleft()


def _moments(standardiser: Standardiser, n_seen: int) -> RunningMoments:
    """The moments that this standardiser was made from. Its one scale is the mean variance, and merging keeps that."""
    moments = RunningMoments(len(standardiser.mean))
    if n_seen:
        moments.count, moments.mean = n_seen, standardiser.mean.double().cpu()
        moments.squares = (n_seen * standardiser.scale.double().square().cpu()).expand_as(moments.mean)
    return moments
