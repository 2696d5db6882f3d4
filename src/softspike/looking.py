"""Looking inside a trained model, deep or not: what its components stand for, by its own codes of some data."""

from typing import NamedTuple

import torch
from torch import Tensor

from softspike.data import Labels, Rows
from softspike.metric import estimated_dictionary
from softspike.metric.attributes import BestComponents, attribute_correlations, best_components, traversal
from softspike.metric.sampled import draws
from softspike.model import VariationalCoder

__all__ = ["Look", "Traversals", "look", "rows_seen", "traversals"]

_NUMBERS = 2**27  # values of the data held at a time: 10,000 faces of 64×64


class Look(NamedTuple):
    """Codes of N rows by the best of J draws, as the paper has them, and what follows from them."""

    codes: Tensor  # (N, d)
    atoms: Tensor  # (D, d), the least-squares dictionary; 0 for components that are never active
    order: Tensor  # (d,) components by the falling norm of their atoms
    best: BestComponents | None  # for each attribute, where there are any


class Traversals(NamedTuple):
    components: list[int]
    values: Tensor  # (k, K), those that each component is set to
    images: Tensor  # (k, K, D)


def rows_seen(n_rows: int, n_features: int) -> int:
    """How many of so many rows `look` takes."""
    return min(n_rows, _NUMBERS // n_features)


@torch.no_grad()
def look(
    model: VariationalCoder, rows: Rows, labels: Labels | None, n_samples: int = 20, device: torch.device | str = "cpu"
) -> Look:
    """At most so many rows as fit in a gigabyte, the first ones."""
    n = rows_seen(len(rows), rows.n_features)
    parts = list(draws(model, _First(rows, n), n_samples, device=device))
    x, codes = torch.cat([part.x for part in parts]), torch.cat([part.codes for part in parts])
    used = (codes != 0).any(0)
    atoms = x.new_zeros(x.shape[1], codes.shape[1])
    if bool(used.any()):
        atoms[:, used] = estimated_dictionary(x, codes[:, used]).atoms
    best = None
    if labels is not None:
        best = best_components(attribute_correlations(Labels(labels.names, labels.values[:n]), codes))
    return Look(codes, atoms, atoms.norm(dim=0).argsort(descending=True), best)


def traversals(
    model: VariationalCoder, seen: Look, components: list[int], row: int = 0, n_values: int = 9, reach: float = 3.0
) -> Traversals:
    """One code, with each component in turn led from −3 to 3 times the root mean square of its non-zero values."""
    chosen = seen.codes[:, components]
    spread = (chosen.square().sum(0) / (chosen != 0).sum(0).clamp_min(1)).sqrt()
    values = spread[:, None] * torch.linspace(-reach, reach, n_values, device=spread.device)
    images = [
        traversal(model.generator, seen.codes[row], component, line)
        for component, line in zip(components, values, strict=True)
    ]
    return Traversals(components, values, torch.stack(images))


class _First:
    """The first n of other rows."""

    def __init__(self, rows: Rows, n: int):
        self.rows, self.n, self.n_features = rows, n, rows.n_features

    def __len__(self) -> int:
        return self.n

    def take(self, indices: Tensor) -> Tensor:
        return self.rows.take(indices)
