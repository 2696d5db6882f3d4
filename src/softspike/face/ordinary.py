"""What learning needs of torch, whatever the caller has set."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["ordinary_torch"]


@contextmanager
def ordinary_torch() -> Iterator[None]:
    """float32 by default, gradients on, inference mode off; afterwards all is as it was.

    Models are float32, and compiled loops take nothing else: a caller who has set another default dtype for work of
    their own, or who calls `fit` where they only infer, gets the same model.

    >>> with torch.inference_mode(), ordinary_torch():
    ...     torch.is_inference_mode_enabled()
    False
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(before)
