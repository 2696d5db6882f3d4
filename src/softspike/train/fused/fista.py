"""One training step of FISTA dictionaries: codes solved for in one kernel, then the atoms descend."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softspike.coder import Coder
from softspike.generator import Dictionary
from softspike.kernels.fista import MOST_COMPONENTS, fista_codes
from softspike.kernels.gather import gather
from softspike.kernels.linear import decoding_error, descend
from softspike.solver import FistaCoder
from softspike.train.fused.clock import Lookup
from softspike.train.fused.reading import must, must_learn
from softspike.train.fused.step import penalties

__all__ = ["FistaReplicas", "FistaStep"]


class FistaReplicas:
    """R dictionaries as one tensor, and the buffers of one step."""

    def __init__(self, coders: Sequence[Coder], n_rows: int, device: torch.device | str):
        self.coders = [_checked(coder) for coder in coders]
        self.index = list(range(len(coders)))
        first = self.coders[0]
        must(all(_alike(coder, first) for coder in self.coders), "FISTA coders alike in atoms, penalty and tolerance")
        self.frobenius = float(getattr(first.generator, "frobenius", 0.0))
        self.atoms = torch.stack([coder.generator.atoms.detach() for coder in self.coders]).to(device)
        n, n_features, d = self.atoms.shape
        self.x = torch.empty(n, n_rows, n_features, device=device)
        self.errors = torch.empty_like(self.x)
        self.codes, self.points = (torch.zeros(n, n_rows, d, device=device) for _ in range(2))
        self.gaps = torch.zeros(n, n_rows, device=device)
        # Along the largest eigenvalue of AᵀA: from a random start three iterations a step would stay behind at first.
        self.direction = torch.linalg.eigh(self.atoms.mT @ self.atoms).eigenvectors[:, :, -1:].contiguous()
        self.totals = torch.zeros(n, 3, device=device)

    @torch.no_grad()
    def write_back(self) -> None:
        for coder, atoms in zip(self.coders, self.atoms, strict=True):
            coder.generator.atoms.copy_(atoms)


def _checked(coder: Coder) -> FistaCoder:
    must(type(coder) is FistaCoder, f"a FistaCoder, not a {type(coder).__name__}")
    assert isinstance(coder, FistaCoder)
    must_learn(coder)
    must(type(coder.generator) is Dictionary, f"a Dictionary, not a {type(coder.generator).__name__}")
    must(not coder.positive and coder.target is None, "signed codes at a given penalty")
    must(coder.generator.atoms.shape[1] <= MOST_COMPONENTS, f"at most {MOST_COMPONENTS} components")
    return coder


def _alike(a: FistaCoder, b: FistaCoder) -> bool:
    def numbers(coder: FistaCoder) -> tuple[object, ...]:
        frobenius = getattr(coder.generator, "frobenius", None)
        return coder.generator.atoms.shape, frobenius, coder.tolerance, coder.max_iterations

    return numbers(a) == numbers(b)


@dataclass
class FistaStep:
    """Gather, solve, descend."""

    replicas: FistaReplicas
    data: Tensor  # (N, D)
    order: Tensor  # (seeds, N) this epoch's permutations
    order_of: Tensor  # (R,) which permutation a replica follows
    rates: Lookup  # the dictionary's learning rate, last
    levels: Lookup  # penalties of the lasso
    precision: str = "tf32"

    def __call__(self, clock: Tensor) -> None:
        r = self.replicas
        coder = r.coders[0]
        gather(self.data, self.order, self.order_of, clock, r.x)
        gram, correlations = torch.bmm(r.atoms.mT, r.atoms), torch.bmm(r.x, r.atoms)
        fista_codes(
            gram, correlations, r.x.square().sum(-1), r.codes, r.points, r.gaps, self._bounds(gram),
            self.levels.values, self.levels.row_of, clock,
            tolerance=coder.tolerance, max_iterations=coder.max_iterations,
        )  # fmt: skip
        decoding_error(r.codes, r.atoms, r.x, r.errors, r.totals, precision=self.precision)
        r.totals[:, 2] += (r.codes != 0).sum(-1).to(torch.float32).mean(-1)
        _, n_rows, n_features = r.x.shape
        descend(
            r.errors, r.codes, r.atoms, self.rates.values[-1], clock, scale=2 / (n_features * n_rows),
            decay=4 * r.frobenius / n_features, precision=self.precision,
        )  # fmt: skip

    @property
    def penalties(self) -> Tensor:
        """That on the atoms, as of `Step`; those of the lasso are `levels`."""
        return penalties(self.replicas.atoms, self.replicas.frobenius)

    def _bounds(self, gram: Tensor) -> Tensor:
        """Largest eigenvalues, by power iterations that go on from the last step's vector, and 5 % for the doubt.

        The dictionary moves little in a step, so three iterations keep up with it.
        """
        v = self.replicas.direction
        for _ in range(3):
            v = torch.bmm(gram, v)
            v = v / torch.linalg.vector_norm(v, dim=1, keepdim=True).clamp_min(1e-30)
        self.replicas.direction.copy_(v)
        return 1.05 * torch.linalg.vector_norm(torch.bmm(gram, v), dim=(1, 2)) + 1e-30
