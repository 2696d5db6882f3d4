"""Other packages' rows. Each is optional: what is not installed is left out, and said so."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

from softspike.bench.entry import GAP, Entry, quality_of
from softspike.bench.problem import Problem

__all__ = ["PEERS", "left_out", "peers"]

_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_TRIED = 100  # signals that a tolerance is chosen on
PEERS = {"scikit-learn": "sklearn", "SPAMS": "spams", "celer": "celer", "skglm": "skglm"}  # by the module they are in


def left_out(packages: Sequence[str] | None = None) -> dict[str, str]:
    """Of those asked for, or all: which cannot be compared with, and why."""
    reasons = {package: _reason(PEERS[package]) for package in packages or PEERS}
    return {package: reason for package, reason in reasons.items() if reason is not None}


@cache
def _reason(module: str) -> str | None:
    """Why a module cannot be imported; None where it can."""
    if find_spec(module) is None:
        return "not installed"
    try:
        with _quietly():
            import_module(module)
    except Exception as error:  # compiled code of theirs that does not fit this machine
        return f"its import failed ({type(error).__name__}: {error})"
    return None


def peers(problem: Problem, packages: Sequence[str] | None = None) -> list[Entry]:
    """Those asked for, or all.

    λ in their conventions: scikit-learn's encoder and SPAMS minimise ½‖x − Az‖² + λ‖z‖₁, the others divide by D.
    """
    makers = {"scikit-learn": _scikit_learn, "SPAMS": _spams, "celer": _celer, "skglm": _skglm}
    absent = left_out(packages)
    wanted = [package for package in packages or makers if package not in absent]
    return [entry for package in wanted for entry in makers[package](problem)]


@contextmanager
def _quietly() -> Iterator[None]:
    """Without their words on signals that stop at a limit: the gap tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _scikit_learn(problem: Problem) -> list[Entry]:
    from sklearn.decomposition import sparse_encode

    # In float64: its coordinate descent does not see its own gap close in float32, and runs on to the limit.
    x, dictionary = problem.x.double().numpy(), np.ascontiguousarray(problem.atoms.T.double().numpy())

    def lasso(algorithm: str) -> Callable[[int], np.ndarray]:
        def code(n: int) -> np.ndarray:
            with _quietly():
                return sparse_encode(x[:n], dictionary, algorithm=algorithm, alpha=problem.penalty, max_iter=5000)

        return code

    def omp(n: int) -> np.ndarray:
        return sparse_encode(x[:n], dictionary, algorithm="omp", n_nonzero_coefs=problem.n_active)

    return [
        Entry("lasso", "scikit-learn", "lasso_cd", lasso("lasso_cd"), "its own tolerance"),
        Entry("lasso", "scikit-learn", "lasso_lars", lasso("lasso_lars"), "exact"),
        Entry("omp", "scikit-learn", "omp", omp),
    ]


def _spams(problem: Problem) -> list[Entry]:
    import spams

    x, atoms = np.asfortranarray(problem.x.numpy().T), np.asfortranarray(problem.atoms.numpy())
    threads = torch.get_num_threads()  # as many as ours

    def lars(n: int) -> Any:
        return spams.lasso(x[:, :n], atoms, lambda1=problem.penalty, mode=2, numThreads=threads).T

    def omp(n: int) -> Any:
        # Without eps it stops at once in float32.
        return spams.omp(x[:, :n], atoms, L=problem.n_active, eps=0.0, numThreads=threads).T

    return [
        Entry("lasso", "SPAMS", "LARS", lars, "exact"),
        Entry("omp", "SPAMS", "OMP", omp, "takes the atom that lowers ‖r‖² most"),
    ]


def _celer(problem: Problem) -> list[Entry]:
    from celer import Lasso

    return [_one_by_one(problem, "celer", lambda alpha, tol: Lasso(alpha, tol=tol, fit_intercept=False))]


def _skglm(problem: Problem) -> list[Entry]:
    from skglm import Lasso

    return [_one_by_one(problem, "skglm", lambda alpha, tol: Lasso(alpha, tol=tol, fit_intercept=False))]


def _one_by_one(problem: Problem, package: str, make: Callable[[float, float], Any]) -> Entry:
    """For packages that solve for one signal at a time, with the loosest tolerance of theirs that reaches the gap."""
    x, atoms = problem.x.double().numpy(), np.asfortranarray(problem.atoms.double().numpy())

    def entry(tolerance: float) -> Entry:
        def code(n: int) -> np.ndarray:
            solver = make(problem.penalty / len(atoms), tolerance)
            with _quietly():
                return np.stack([solver.fit(atoms, row).coef_.copy() for row in x[:n]])

        return Entry("lasso", package, "Lasso", code, f"one signal per call, tol={tolerance:g}")

    for tolerance in _TOLERANCES:
        found = entry(tolerance)
        gap = quality_of(found, problem, found.code(min(_TRIED, len(x)))).gap
        if gap is not None and gap <= GAP:
            break
    return found
