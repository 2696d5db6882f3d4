"""Independent pieces of work on all cores: one thread each, since most of the operations inside are small."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

import torch

__all__ = ["on_all_cores", "stream_on_all_cores"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def on_all_cores(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> list[Result]:
    """The results in order, without gradients; as many threads as torch would use, each running its own pieces."""
    return list(stream_on_all_cores(function, pieces))


def stream_on_all_cores(function: Callable[[Piece], Result], pieces: Iterable[Piece]) -> Iterator[Result]:
    """The same one by one: pieces are taken in the caller's thread, and few are under way at a time."""
    n_threads, source = torch.get_num_threads(), iter(pieces)
    begun = list(islice(source, 2))

    def alone(piece: Piece) -> Result:
        torch.set_num_threads(1)
        with torch.no_grad():
            return function(piece)

    if n_threads == 1 or len(begun) < 2:
        for piece in chain(begun, source):
            with torch.no_grad():
                result = function(piece)
            yield result
        return
    try:
        with ThreadPoolExecutor(n_threads) as pool:
            waiting: deque[Future[Result]] = deque(pool.submit(alone, piece) for piece in begun)
            for piece in source:
                waiting.append(pool.submit(alone, piece))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
    finally:
        torch.set_num_threads(n_threads)
