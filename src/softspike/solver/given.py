"""What a solver is given: samples and atoms that fit each other, or one sentence."""

import torch
from torch import Tensor

from softspike.data.error import DataError, dtype_error, shape_error
from softspike.data.tensors import check_tensor

__all__ = ["check_given"]

_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_given(x: Tensor, atoms: Tensor) -> None:
    """Raise DataError unless x is (B, D) and atoms are (D, d), both of one dtype that can be multiplied."""
    for name, given in (("x", x), ("atoms", atoms)):
        if not isinstance(given, Tensor):
            raise DataError(f"{name} is a {type(given).__name__}, expected a tensor; give torch.as_tensor({name}).")
        check_tensor(given)
        if given.ndim != 2:
            raise shape_error(given.shape)
        if given.dtype not in _DTYPES:
            raise dtype_error(given.dtype)
    if x.dtype != atoms.dtype or x.shape[1] != atoms.shape[0]:
        raise DataError(
            f"x is {tuple(x.shape)} of {x.dtype} and the atoms are {tuple(atoms.shape)} of {atoms.dtype}, expected "
            "(n_samples, n_features) and (n_features, n_atoms) of one dtype; transpose or convert one of them."
        )
