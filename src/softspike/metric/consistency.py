"""Whether the same features are chosen again when the input moves a little."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from softspike.coder import Coder
from softspike.metric.support import jaccard_index

__all__ = ["Consistency", "support_consistency"]


class Consistency(NamedTuple):
    noise: list[float]  # standard deviation of what was added, in units of the data's
    jaccard: list[float]  # mean index of the supports with and without it


@torch.no_grad()
def support_consistency(coder: Coder, x: Tensor, noise: Sequence[float], seed: int = 0) -> Consistency:
    """The mean Jaccard index of the supports of x and of x + s·ε, ε ~ N(0, 1), for standardised x and each s."""
    random = Generator(device=x.device).manual_seed(seed)
    epsilon = torch.randn(x.shape, generator=random, dtype=x.dtype, device=x.device)
    still = coder.code(x)
    pairs = (torch.stack([still, coder.code(x + s * epsilon)]) for s in noise)
    index = [float(jaccard_index(pair).double().mean()) for pair in pairs]
    return Consistency(list(noise), index)
