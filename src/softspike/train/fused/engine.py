"""Launching fused steps: captured once, replayed, and nothing read back inside an epoch."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from softspike.coder import Coder, Loss
from softspike.data import Rows
from softspike.schedule import Scaled
from softspike.solver import FistaCoder
from softspike.train.diverged import Diverged, lost, lost_parameter
from softspike.train.fused.clock import Clock, Lookup
from softspike.train.fused.fista import FistaReplicas, FistaStep
from softspike.train.fused.reading import check_alike, check_recipe, read
from softspike.train.fused.replicas import Replicas
from softspike.train.fused.step import Step
from softspike.train.loop import Observer, Progress, current
from softspike.train.order import epoch_order, noise_key
from softspike.train.recipe import Recipe

__all__ = ["FusedRun", "prepare", "train_fused"]

_MOST_AHEAD = 20  # steps per captured graph: enough that launching one costs nothing beside running it


class Tally(NamedTuple):
    """An epoch's sums, on their way to the host."""

    done: int
    steps: int
    totals: Tensor  # (R, 4), valid once `ready` has happened
    ready: torch.cuda.Event | None

    def means(self) -> Tensor:
        """(R, 4): misfit, KL and active count, averaged over the epoch's steps, and the penalty on its first atoms."""
        if self.ready is not None:
            self.ready.synchronize()
        return torch.cat([self.totals[:, :3] / self.steps, self.totals[:, 3:]], dim=1)


class FusedRun:
    """Replicas in training. With `ahead` = 0 kernels are launched one by one, nothing is recorded."""

    def __init__(self, step: Step | FistaStep, seeds: Sequence[int], recipe: Recipe, ahead: int = _MOST_AHEAD):
        self.step, self.recipe, self.done = step, recipe, 0
        self.per_epoch = step.data.shape[0] // step.replicas.x.shape[1]
        self._seeds = list(dict.fromkeys(seeds))
        self._ahead = max(k for k in range(1, max(ahead, 1) + 1) if self.per_epoch % k == 0)
        self._recorded = ahead > 0 and step.data.is_cuda
        self._clock = Clock(0, self._ahead, step.data.device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def run_epoch(self) -> Tally:
        """Launch one epoch, or what is left to do of it, without waiting for it."""
        steps = min(self.per_epoch, self.recipe.n_steps - self.done)
        self._load_order(self.done // self.per_epoch)
        self.step.replicas.totals.zero_()
        penalties = self.step.penalties
        for start in range(0, steps, self._ahead):
            self._launch(min(self._ahead, steps - start))
        self.done += steps
        return self._tally(steps, penalties)

    def _launch(self, n: int) -> None:
        """n ≤ ahead steps. The first ones run as they are, which compiles the kernels; then a graph is replayed."""
        if self._graph is not None and n == self._ahead:
            self._graph.replay()
            return
        for number in range(n):
            self.step(self._clock[number])
        self._clock.advance(n)
        if self._recorded and self._graph is None and n == self._ahead:
            self._graph = self._capture()

    def _capture(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for number in range(self._ahead):
                self.step(self._clock[number])
            self._clock.advance(self._ahead)
        return graph

    def _load_order(self, epoch: int) -> None:
        n = self.step.data.shape[0]
        order = torch.stack([epoch_order(seed, epoch, n) for seed in self._seeds]).to(torch.int32)
        if self.step.data.is_cuda:
            order = order.pin_memory()
        self.step.order.copy_(order, non_blocking=True)

    def _tally(self, steps: int, penalties: Tensor) -> Tally:
        totals = torch.cat([self.step.replicas.totals, penalties[:, None]], dim=1)
        if not totals.is_cuda:
            return Tally(self.done, steps, totals, None)
        host = torch.empty(totals.shape, pin_memory=True)
        host.copy_(totals, non_blocking=True)
        ready = torch.cuda.Event()
        ready.record()
        return Tally(self.done, steps, host, ready)


def prepare(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    seeds: Sequence[int],
    device: torch.device | str,
    precision: str | None = None,
) -> FusedRun:
    """The run, or NotFused where these coders or this recipe have no kernels."""
    inertia = check_recipe(recipe)  # before rows are taken, which may be many
    data, distinct = rows.take(torch.arange(len(rows))).to(device), list(dict.fromkeys(seeds))
    n_rows, n_steps = min(recipe.batch_size, len(rows)), recipe.n_steps
    rates = Lookup([recipe.groups[g].rate for g in ("inference", "generator")], n_steps, device)
    order = torch.zeros(len(distinct), len(rows), dtype=torch.int32, device=device)
    precision = precision or ("ieee" if data.device.type == "cpu" else "tf32")

    def order_of(index: list[int]) -> Tensor:
        return torch.tensor([distinct.index(seeds[i]) for i in index], dtype=torch.int32, device=device)

    if isinstance(coders[0], FistaCoder):
        solved = FistaReplicas(coders, n_rows, device)
        levels = Lookup([Scaled(c.warm_up, float(c.penalty)) for c in solved.coders], n_steps, device)
        solving = FistaStep(solved, data, order, order_of(solved.index), rates, levels, precision)
        return FusedRun(solving, seeds, recipe)
    replicas = Replicas(check_alike([read(coder) for coder in coders]), n_rows, device)
    keys = torch.tensor([noise_key(seeds[i]) for i in replicas.index], device=device)
    warm_ups = Lookup([r.warm_up for r in replicas.readings], n_steps, device)
    temperatures = Lookup([r.temperature for r in replicas.readings], n_steps, device)
    step = Step(
        replicas, data, order, order_of(replicas.index), keys, rates, warm_ups, temperatures, inertia, precision
    )
    return FusedRun(step, seeds, recipe)


def train_fused(
    coders: Sequence[Coder],
    rows: Rows,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device | str = "cuda",
    observers: Sequence[Observer] = (),
    precision: str | None = None,
) -> list[Diverged | None]:
    """As `train_in_turn`, all coders in one program; raises NotFused for what has no kernels.

    `precision` of products: "ieee" for float32, "tf32" (a GPU's default) for tf32 and scores on bfloat16 atoms.

    Observers are told once an epoch, with the mean loss of the replicas, one epoch late: nothing waits for them. The
    penalty on the atoms is that of the epoch's first ones.
    """
    run = prepare([coder.to(device) for coder in coders], rows, recipe, seeds, device, precision)
    ends: list[Diverged | None] = [None] * len(coders)
    optimizer = recipe.build(coders[0].parameter_groups())
    betas = torch.tensor([float(getattr(coder, "beta", 0.0)) for coder in coders])
    waiting: list[Tally] = []
    with current(device):
        while run.done < recipe.n_steps or waiting:
            if run.done < recipe.n_steps:
                waiting.append(run.run_epoch())
            if len(waiting) == 2 or run.done == recipe.n_steps:
                tally = waiting.pop(0)
                each = _losses(tally, run, betas)
                for number, parts in enumerate(torch.stack(each).T.tolist()):
                    _note_end(ends, number, lost(**dict(zip(Loss._fields, parts, strict=True))), tally.done)
                loss = Loss(*(part.mean() for part in each))
                for observer in observers:
                    observer.logged(Progress(tally.done, recipe.n_steps, loss, coders[0], optimizer))
        run.step.replicas.write_back()
    for number, coder in enumerate(coders):
        _note_end(ends, number, lost_parameter(coder), run.done)
    return ends


def _losses(tally: Tally, run: FusedRun, betas: Tensor) -> Loss:
    """Of each coder, in the order in which they were given, (R,) each."""
    misfit, kl, active, penalty = tally.means()[torch.tensor(run.step.replicas.index).argsort()].T
    return Loss(misfit + betas * kl + penalty, misfit, kl, active)


def _note_end(ends: list[Diverged | None], number: int, cause: str | None, done: int) -> None:
    """The first cause stays."""
    if ends[number] is None and cause is not None:
        ends[number] = Diverged(done, cause)
