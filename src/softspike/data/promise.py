"""What a header promises is compared with what the file can hold before any memory is asked for."""

from softspike.data.error import DataError

__all__ = ["check_promise"]

# Deflate cannot expand a byte into more than 1032; columns of one repeated value can shrink further still.
_MOST_EXPANSION = 1032
_HARMLESS = 2**29  # bytes, whatever the file's size


def check_promise(promised: int, stored: int, what: str) -> None:
    """Raise DataError where `stored` bytes of a file claim to become `promised` bytes of `what`."""
    if promised > max(_HARMLESS, _MOST_EXPANSION * stored):
        raise DataError(
            f"{what} would take {promised:.3g} bytes but the file holds {stored}, expected at most {_MOST_EXPANSION} "
            "bytes of values for each byte; check that it is complete and comes from where you think."
        )
