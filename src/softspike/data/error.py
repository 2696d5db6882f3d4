"""What is raised when data cannot be used, and the sentences about shape and dtype."""

from collections.abc import Sequence

__all__ = ["DataError", "dtype_error", "reason", "shape_error"]

_REMEDIES = {
    0: "give an array of samples",
    1: "Reshape your data with x[None] for one sample or x[:, None] for one feature",
}


class DataError(ValueError):
    """The data cannot be used: one sentence with what was given, what is needed and what to do."""


def shape_error(shape: Sequence[int]) -> DataError:
    """For an array that is not (n_samples, n_features)."""
    remedy = _REMEDIES.get(len(shape), "flatten each sample with x.reshape(len(x), -1)")
    return DataError(f"the data has shape {tuple(shape)}, expected (n_samples, n_features); {remedy}.")


def dtype_error(dtype: object) -> DataError:
    """For an array that does not hold real numbers."""
    given = "Complex data not supported" if "complex" in str(dtype) else "this data cannot be used"
    return DataError(f"{given}: the dtype is {dtype}, expected real numbers; convert it to float32 first.")


def reason(cause: Exception) -> str:
    """What a library said, in one line that fits inside a sentence."""
    said = (cause.strerror if isinstance(cause, OSError) else None) or str(cause)
    first = (said.splitlines() or [""])[0]
    return first.rstrip(" .;:") or type(cause).__name__
