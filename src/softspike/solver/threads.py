"""Independent pieces of work on all cores: one thread each, since most of the operations inside are small."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["on_all_cores"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def on_all_cores(function: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """The results in order, without gradients; as many threads as torch would use, each running its own pieces."""
    n_threads = torch.get_num_threads()

    def alone(piece: Piece) -> Result:
        torch.set_num_threads(1)
        with torch.no_grad():
            return function(piece)

    if n_threads == 1 or len(pieces) <= 1:
        with torch.no_grad():
            return [function(piece) for piece in pieces]
    try:
        with ThreadPoolExecutor(min(n_threads, len(pieces))) as pool:
            return list(pool.map(alone, pieces))
    finally:
        torch.set_num_threads(n_threads)
