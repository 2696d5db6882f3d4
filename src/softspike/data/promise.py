"""What packed values would become is compared with what the file holds before any memory is asked for."""

from softspike.data.error import DataError

__all__ = ["check_promise"]

# Deflate makes up to 1032 bytes of one, and zeros are all it takes; numbers that were measured shrink to a tenth.
_MOST_EXPANSION = 100
_HARMLESS = 2**29  # bytes, whatever the file's size


def check_promise(promised: int, stored: int, what: str) -> None:
    """Raise DataError where `stored` bytes of a file claim to become `promised` bytes of `what`."""
    if promised > max(_HARMLESS, _MOST_EXPANSION * stored):
        raise DataError(
            f"{what} would take {promised:.3g} bytes but the file holds {stored}, expected at most {_MOST_EXPANSION} "
            "bytes of values for each byte; check that it is complete and comes from where you think, and write data "
            "that really is so as .npy, which is not unpacked."
        )
