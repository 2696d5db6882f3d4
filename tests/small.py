"""Small data and quick settings for the tests of training, estimator and command line."""

from typing import Any

import numpy as np
import torch

from softspike import SparseCoder
from softspike.data import synthetic

# One thread: small operations gain nothing from a second one, and suffer where the machine is shared.
torch.set_num_threads(1)

# Two steps of the last fit of the dictionary: it would take longer than all else, and has tests of its own.
QUICK: dict[str, Any] = {
    "n_components": 24, "n_active": 3, "n_samples": 2, "batch_size": 32, "dictionary_refits": 2, "random_state": 0,
}  # fmt: skip


def quick(**changes: Any) -> SparseCoder:
    return SparseCoder(**{**QUICK, "max_steps": 20, **changes})


def small_data(n_samples: int = 256, n_features: int = 12, seed: int = 0) -> np.ndarray:
    """(n_samples, n_features) float32: three of twenty-four sources on, a little noise, a mean that is not 0."""
    return 1 + synthetic(n_samples, n_features, 24, 3, seed, noise=0.05, positive=False).x.numpy()


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """NaN equals itself here: a cut that has not been placed is NaN."""
    return one.keys() == other.keys() and all(bits(one[name]) == bits(other[name]) for name in one)


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().numpy().tobytes()


def asks_for_probabilities(code: str) -> bool:
    """Whether code uses what is calibrated by simulation; see `no_simulation`."""
    return any(name in code for name in ("activation_probability", "return_std", "simulated"))
