"""This library's rows: encoders, the lasso's two solvers, and matching pursuit."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from softspike.bench.entry import GAP, ONE_MORE, Entry
from softspike.bench.problem import Problem
from softspike.data import TensorRows
from softspike.encoder import Encoder, LinearEncoder, MLPEncoder
from softspike.estimator import SparseCoder
from softspike.methods import Plan
from softspike.methods.ours import hard_gaussian
from softspike.methods.plan import Built
from softspike.metric.sampled import draws
from softspike.model import VariationalCoder
from softspike.posterior import GaussianPosterior
from softspike.solver import fista, lasso, omp
from softspike.threshold import Threshold

__all__ = ["encoders", "solvers"]

_FINE_GAP = 1e-5
_WIDTH = 0.2  # of a posterior at the start, in levels, as the default's own


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
        Entry(
            "omp", "softspike", ONE_MORE, lambda n: omp(x[:n], atoms, n_active=problem.n_active + 1),
            "for those that explain more with as many",
        ),
    ]  # fmt: skip


def encoders(problem: Problem, n_steps: int, n_draws: int = 20) -> list[Entry]:
    """`transform` of trained coders, and the best of J draws from their posteriors."""
    models = [
        _Model("default model", problem.atoms, None),
        _Model("linear encoder", problem.atoms, LinearEncoder),
        _Model("MLP encoder", problem.atoms, MLPEncoder, rate=1e-3),
    ]
    steps = [max(n_steps // 5, 1), n_steps, n_steps]  # the default's encoder has next to nothing to learn
    return [entry for model, n in zip(models, steps, strict=True) for entry in _trained(problem, model, n, n_draws)]


@dataclass(frozen=True)
class _Model:
    """The default model, with its dictionary started as the shared one; or with another encoder in place of its own.

    Such an encoder is all there is: its codes are not corrected.
    """

    name: str
    atoms: Tensor
    encoder: Callable[[int], Encoder] | None
    rate: float | None = None

    def __call__(self, plan: Plan) -> Built:
        coder, recipe = hard_gaussian(plan)
        assert isinstance(coder, VariationalCoder)
        assert isinstance(coder.threshold, Threshold)
        coder.generator.weight.data.copy_(self.atoms)  # type: ignore[operator, union-attr]
        if self.encoder is not None:
            coder.encoder, coder.correction = self.encoder(plan.n_features), None
            coder.posterior = head = GaussianPosterior(coder.encoder.width, plan.n_components)
            width = _WIDTH * float(coder.threshold.level.value.detach())
            with torch.no_grad():
                head.log_variance.weight.mul_(0.01)
                head.log_variance.bias.fill_(2 * math.log(width))
                if isinstance(coder.encoder, LinearEncoder):  # from correlations, which many atoms share
                    head.location.weight.copy_(self.atoms.T * min(1.0, plan.n_features / plan.n_components))
                    head.location.bias.zero_()
        return Built(coder, recipe)


def _trained(problem: Problem, model: _Model, n_steps: int, n_draws: int) -> list[Entry]:
    signals = problem.x.numpy()
    coder = SparseCoder(
        problem.n_components, n_active=problem.n_active, method=model, learning_rate=model.rate, max_steps=n_steps,
        batch_size=100, dictionary_refits=0, random_state=0, verbose=False,
        device="cpu",  # where its peers are
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
            "encoder", "softspike", f"transform, {model.name}, J = 1", lambda n: coder.transform(signals[:n]),
            f"{n_steps} training steps from the shared dictionary", decode,
        ),
        Entry(
            "encoder", "softspike", f"transform, {model.name}, J = {n_draws}",
            lambda n: _best_of(coder, problem.x[:n], n_draws), f"the same, the best of {n_draws} draws", decode,
        ),
    ]  # fmt: skip


def _best_of(coder: SparseCoder, x: Tensor, n_draws: int) -> Tensor:
    model = coder.coder_
    assert isinstance(model, VariationalCoder)
    rows = TensorRows(coder.standardiser_(x))
    return torch.cat([part.codes for part in draws(model, rows, n_draws)])
