"""Which rows make up which step, and each step's random numbers: pure functions of the seed and the step."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Generator, Tensor

__all__ = ["Orders", "batch_rows", "epoch_order", "noise_key", "step_flips", "step_random", "step_seed"]


def _mix(*numbers: int) -> int:
    """A 63-bit seed from several integers, so that neighbouring seeds and steps share nothing."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def step_seed(seed: int, step: int, rank: int = 0) -> int:
    """The seed of one training step, on one of several processes."""
    return _mix(seed, 1, step, rank) if rank else _mix(seed, 1, step)


def step_random(seed: int, step: int, device: torch.device | str = "cpu", rank: int = 0) -> Generator:
    """The random generator of one training step, on one of several processes."""
    return Generator(device=device).manual_seed(step_seed(seed, step, rank))


def step_flips(seed: int, step: int, n_rows: int) -> Tensor:
    """Which images of a step's batch are mirrored: (B,) booleans, each with probability ½."""
    return torch.rand(n_rows, generator=Generator().manual_seed(_mix(seed, 4, step))) < 0.5


def noise_key(seed: int) -> int:
    """The 63-bit key of the counter-based random numbers of a whole run."""
    return _mix(seed, 3)


@lru_cache(maxsize=1)
def epoch_order(seed: int, epoch: int, n_rows: int) -> Tensor:
    """The permutation of the rows that one epoch follows."""
    # Four bytes a row where they suffice: the order of a long file of short rows can outweigh everything else held.
    dtype = torch.int32 if n_rows < 2**31 else torch.int64
    return torch.randperm(n_rows, generator=Generator().manual_seed(_mix(seed, 2, epoch)), dtype=dtype)


def batch_rows(seed: int, step: int, n_rows: int, batch_size: int) -> Tensor:
    """The row numbers of one step: each epoch visits a fresh permutation once, dropping an incomplete last batch."""
    size = min(batch_size, n_rows)
    per_epoch = n_rows // size
    epoch, index = divmod(step, per_epoch)
    return epoch_order(seed, epoch, n_rows)[index * size : (index + 1) * size]


class Orders:
    """The row numbers (R, B) of a step for several seeds: `batch_rows` of each, with all their permutations kept."""

    def __init__(self, seeds: Sequence[int], n_rows: int, batch_size: int):
        self.seeds, self.n_rows, self.size = seeds, n_rows, min(batch_size, n_rows)
        self._epoch, self._order = -1, torch.empty(0)

    def __call__(self, step: int) -> Tensor:
        epoch, index = divmod(step, self.n_rows // self.size)
        if epoch != self._epoch:
            self._order = torch.stack([epoch_order(seed, epoch, self.n_rows) for seed in self.seeds])
            self._epoch = epoch
        return self._order[:, index * self.size : (index + 1) * self.size]
