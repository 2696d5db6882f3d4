"""The importance-weighted bound over a whole data set, in bounded memory."""

import torch

from softspike.data import Rows
from softspike.model import VariationalCoder

__all__ = ["mean_bound"]

_WEIGHED_NUMBERS = 2**22  # K·B·d drawn at a time; log p − log q holds a dozen arrays of this size


@torch.no_grad()
def mean_bound(
    coder: VariationalCoder, rows: Rows, n_samples: int = 200, seed: int = 0, device: torch.device | str = "cpu"
) -> float:
    """mean over rows of log (1/K)·Σₖ p(x|zₖ)p(zₖ)/q(zₖ|x), in nats per row; K = 200 as in the paper."""
    random = torch.Generator(device=device).manual_seed(seed)
    total, size = 0.0, max(_WEIGHED_NUMBERS // (n_samples * coder.generator.n_components), 1)
    for numbers in torch.arange(len(rows)).split(size):
        total += float(coder.bound(rows.take(numbers).to(device), n_samples, random).double().sum())
    return total / len(rows)
