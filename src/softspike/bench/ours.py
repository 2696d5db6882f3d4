"""This library's rows: encoders, the lasso's two solvers, and matching pursuit."""

from dataclasses import dataclass

import torch
from torch import Tensor

from softspike.bench.entry import GAP, Entry
from softspike.bench.problem import Problem
from softspike.data import TensorRows
from softspike.encoder import Encoder, LinearEncoder, MLPEncoder
from softspike.estimator import SparseCoder
from softspike.generator import Dictionary, Generator
from softspike.methods import Plan
from softspike.methods.networks import LinearNetworks
from softspike.metric.sampled import draws
from softspike.model import VariationalCoder
from softspike.solver import fista, lasso, omp

__all__ = ["encoders", "solvers"]

_FINE_GAP = 1e-5


@dataclass(frozen=True)
class _From(LinearNetworks):
    """A given kind of encoder before a dictionary that starts as the shared one."""

    atoms: Tensor | None = None
    linear: bool = False

    def encoder(self, plan: Plan) -> Encoder:
        return LinearEncoder(plan.n_features) if self.linear else MLPEncoder(plan.n_features)

    def generator(self, plan: Plan) -> Generator:
        dictionary = Dictionary(plan.n_features, plan.n_components)
        if self.atoms is not None:
            dictionary.weight.data.copy_(self.atoms)
        return dictionary


def solvers(problem: Problem) -> list[Entry]:
    x, atoms, penalty = problem.x, problem.atoms, problem.penalty
    return [
        Entry("lasso", "softspike", "lasso", lambda n: lasso(x[:n], atoms, penalty, tolerance=GAP).codes),
        Entry(
            "lasso", "softspike", "lasso, fine", lambda n: lasso(x[:n], atoms, penalty, tolerance=_FINE_GAP).codes,
            f"to a gap of {_FINE_GAP:g}",
        ),
        Entry(
            "lasso", "softspike", "FISTA",
            lambda n: fista(x[:n], atoms, penalty, tolerance=GAP, max_iterations=5000).codes, "the plain reference",
        ),
        Entry("omp", "softspike", "OMP", lambda n: omp(x[:n], atoms, n_active=problem.n_active)),
    ]  # fmt: skip


def encoders(problem: Problem, n_steps: int, n_draws: int = 20) -> list[Entry]:
    """`transform` of two trained coders, and the best of J draws from their posteriors."""
    return [entry for linear in (True, False) for entry in _encoder(problem, linear, n_steps, n_draws)]


def _encoder(problem: Problem, linear: bool, n_steps: int, n_draws: int) -> list[Entry]:
    kind, signals = "linear" if linear else "MLP", problem.x.numpy()
    coder = SparseCoder(
        problem.n_components, n_active=problem.n_active, method="thresholded-laplacian", max_steps=n_steps,
        batch_size=100, generator=_From(problem.atoms, linear), random_state=0, verbose=False,
    )  # fmt: skip
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # training is not timed, and small steps gain little from a second core
    try:
        coder.fit(problem.learning.numpy())
    finally:
        torch.set_num_threads(threads)

    def decode(z: Tensor) -> Tensor:
        return torch.from_numpy(coder.inverse_transform(z.numpy()))

    return [
        Entry(
            "encoder", "softspike", f"transform, {kind} encoder, J = 1", lambda n: coder.transform(signals[:n]),
            f"own dictionary, {n_steps} training steps", decode,
        ),
        Entry(
            "encoder", "softspike", f"transform, {kind} encoder, J = {n_draws}",
            lambda n: _best_of(coder, problem.x[:n], n_draws), f"the same, best of {n_draws} draws", decode,
        ),
    ]  # fmt: skip


def _best_of(coder: SparseCoder, x: Tensor, n_draws: int) -> Tensor:
    model = coder.coder_
    assert isinstance(model, VariationalCoder)
    rows = TensorRows(coder.standardiser_(x))
    return torch.cat([part.codes for part in draws(model, rows, n_draws)])
