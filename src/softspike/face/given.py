"""What users hand over, in one sentence where it is of the wrong kind."""

from typing import Any

import numpy as np

from softspike.data.error import dtype_error, shape_error

__all__ = ["check_kind", "checked_codes"]


def check_kind(data: Any) -> None:
    """In one sentence what scikit-learn would say in several lines, the values among them."""
    try:
        shape = data.shape if hasattr(data, "shape") else np.asarray(data).shape
    except ValueError:  # lists of different lengths
        return
    if len(shape) != 2:
        raise shape_error(shape)
    if getattr(getattr(data, "dtype", None), "kind", "") == "c":
        raise dtype_error(data.dtype)


def checked_codes(codes: Any) -> Any:
    """The sparse codes; ValueError for an index that points nowhere: products and conversions would end the process."""
    if hasattr(codes, "check_format"):  # CSR, CSC and BSR; others check themselves when they are made or converted
        try:
            codes.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"the codes are no whole sparse matrix ({error}); give what transform returned") from error
    return codes
