"""Training that stops making sense goes back to the last good state and on with smaller steps, at most three times."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.notice import Notice, notice
from softspike.train.diverged import Diverged
from softspike.train.loop import Progress
from softspike.train.recipe import Recipe

__all__ = ["Recovered", "Recovery", "Rollback", "check_end", "train_recovering"]

TRIES, FACTOR = 3, 0.25
# Standardised data has a variance of 1 per feature, which the code 0 leaves. Where codes are no worse than that, a
# batch has a misfit above _ABSURD with a probability below 1/10 (Markov), and _IN_A_ROW of them with one below 10⁻⁸: no
# false alarm in a million checks, however heavy the tails of the data. A state is not worth keeping where the misfit
# is above _ABSURD, though that may yet prove to be one odd batch.
_ABSURD, _IN_A_ROW = 10.0, 8


class Recovered(Notice):
    """Training diverged, and goes on from before that with a lower learning rate."""


class Rollback(NamedTuple):
    """What happened, for those who keep a log."""

    error: Diverged
    step: int  # that training goes on from
    tries: int  # so far, this one included


class Recovery:
    """An observer that keeps the last good state, and notices a misfit that has risen and does not come down again.

    `newest` is the last (step, tensors) that was worth keeping; `step` and `tensors` are those that it goes back to.
    `take` gives the whole state as named tensors, `put` puts it back; `start` is the state that training begins with,
    fresh or from a checkpoint. What it knows itself travels in the state, so a run that was killed after it had gone
    back ends in the same bits as one that was not.
    """

    def __init__(
        self, take: Callable[[], dict[str, Tensor]], put: Callable[[dict[str, Tensor]], None], step: int = 0,
        start: dict[str, Tensor] | None = None,
    ):  # fmt: skip
        self.take, self.put = take, put
        self.tries = 0 if start is None else int(start.get("recovery.tries", 0))
        self._misfits = _history(start or {})
        self.step, self.tensors = self.newest = step, self._state()

    def logged(self, progress: Progress) -> None:
        self._misfits = [*self._misfits, float(progress.loss.misfit)][-_IN_A_ROW:]
        first, last = self._misfits[0], self._misfits[-1]
        if len(self._misfits) == _IN_A_ROW and min(self._misfits) > _ABSURD and last >= first:
            raise Diverged(progress.step, f"the reconstruction error rose to {last:.3g} per feature and does not fall")

    def saved(self, progress: Progress) -> None:
        if float(progress.loss.misfit) <= _ABSURD:
            self.newest = progress.step, self._state()
            if progress.step < progress.n_steps:  # the end may yet be found wanting, and then it goes back from there
                self.step, self.tensors = self.newest

    def go_back(self, error: Diverged) -> Rollback:
        """To the last good state; the error itself where that has been tried often enough."""
        if self.tries == TRIES:
            tried = f"going back {TRIES} times, at last with {FACTOR**TRIES:.3g} of its learning rate, did not help"
            raise Diverged(error.step, error.cause, tried) from error
        self.tries += 1
        self.put(self.tensors)
        self._misfits = _history(self.tensors)
        return Rollback(error, self.step, self.tries)

    def lowered(self, recipe: Recipe) -> Recipe:
        """The recipe as it is now followed."""
        return recipe.slowed(FACTOR**self.tries) if self.tries else recipe

    def _state(self) -> dict[str, Tensor]:
        own = {"tries": torch.tensor(self.tries), "misfits": torch.tensor(self._misfits, dtype=torch.float64)}
        return {**self.take(), **{f"recovery.{name}": value for name, value in own.items()}}


def train_recovering(
    train_from: Callable[[Recipe, int], object],
    recipe: Recipe,
    recovery: Recovery,
    told: Callable[[Rollback], object] = lambda rollback: None,
) -> None:
    """Call `train_from(recipe, step)` until it ends well; whoever keeps a log is told of each return."""
    while True:
        try:
            train_from(recovery.lowered(recipe), recovery.step)
            return
        except Diverged as error:
            rollback = recovery.go_back(error)
            told(rollback)
            notice(_sentence(rollback), Recovered)


@torch.no_grad()
def check_end(coder: Coder, x: Tensor, step: int) -> None:
    """Raise Diverged where the codes of x, rows that training never saw, leave ten times the error of the code 0.

    A short run may be lost from its first look on, before there are enough of them to say that the error rose.
    """
    left, zero = float((x - coder.generator(coder.code(x))).square().mean()), float(x.square().mean())
    if not left <= _ABSURD * max(zero, 1.0):
        raise Diverged(step, f"the reconstruction error ended at {left:.3g} per feature, where zeros leave {zero:.3g}")


def _sentence(rollback: Rollback) -> str:
    error, step, tries = rollback
    rate = f"{FACTOR**tries:.3g} of its learning rate (try {tries} of {TRIES})"
    return (
        f"training diverged at step {error.step}: {error.cause}; it goes on from step {step} with {rate}; "
        "give a lower one to avoid this"
    )


def _history(tensors: dict[str, Tensor]) -> list[float]:
    return tensors["recovery.misfits"].tolist() if "recovery.misfits" in tensors else []
