"""The importance-weighted bound over a whole data set, in bounded memory."""

import torch
from torch import Tensor

from softspike.data import Rows
from softspike.model import VariationalCoder

__all__ = ["bounds", "mean_bound"]

_WEIGHED_NUMBERS = 2**22  # K·B·d drawn at a time; log p − log q holds a dozen arrays of this size


@torch.no_grad()
def bounds(
    coder: VariationalCoder, rows: Rows, n_samples: int = 200, seed: int = 0, device: torch.device | str = "cpu"
) -> Tensor:
    """log (1/K)·Σₖ p(x|zₖ)p(zₖ)/q(zₖ|x) of each row, in nats, (n,) in float64; K = 200 as in the paper."""
    random = torch.Generator(device=device).manual_seed(seed)
    size = max(_WEIGHED_NUMBERS // (n_samples * coder.generator.n_components), 1)
    numbers = torch.arange(len(rows)).split(size)
    return torch.cat([coder.bound(rows.take(n).to(device), n_samples, random).double().cpu() for n in numbers])


def mean_bound(
    coder: VariationalCoder, rows: Rows, n_samples: int = 200, seed: int = 0, device: torch.device | str = "cpu"
) -> float:
    """The mean of `bounds`, in nats per row."""
    return float(bounds(coder, rows, n_samples, seed, device).mean())
