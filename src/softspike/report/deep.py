"""Pictures of what a deep model has learned: its reconstructions, and the dictionary that its codes imply."""

from pathlib import Path

import torch
from torch import Tensor

from softspike.metric import estimated_dictionary
from softspike.metric.sampled import Drawn
from softspike.model import VariationalCoder
from softspike.report.figure import save_dictionary
from softspike.report.pictures import save_grid

__all__ = ["save_estimated_dictionary", "save_reconstructions"]

_SHOWN, _MOST_ATOMS = 12, 400


@torch.no_grad()
def save_reconstructions(
    path: Path, coder: VariationalCoder, drawn: Drawn, image_shape: tuple[int, ...] | None
) -> None:
    """Three rows: images, what the best draw makes of them, what the deterministic code makes of them."""
    x = drawn.x[:_SHOWN]
    steady = coder.generator(coder.code(x))
    save_grid(path, [part[:_SHOWN].cpu().numpy() for part in (x, drawn.reconstruction, steady)], image_shape)


def save_estimated_dictionary(path: Path, x: Tensor, codes: Tensor, image_shape: tuple[int, ...] | None) -> None:
    """The least-squares atoms of the components that are ever active, by falling norm, at most 400 of them."""
    used = codes[:, (codes != 0).any(0)]
    atoms = estimated_dictionary(x, used if used.shape[1] else codes[:, :1]).atoms
    strongest = atoms.norm(dim=0).argsort(descending=True)[:_MOST_ATOMS]
    save_dictionary(path, atoms[:, strongest].T.cpu().numpy(), image_shape)
