"""What the experiments share on the command line: names in a list, and cores among cells."""

import argparse
import os
from collections.abc import Callable, Collection

__all__ = ["at_least", "names_of", "threads_of"]


def names_of(known: Collection[str]) -> Callable[[str], list[str]]:
    """Reads names with commas between them, each of which must be known."""

    def read(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        strange = [name for name in names if name not in known]
        if strange:
            wanted = ", ".join(known)
            raise argparse.ArgumentTypeError(f"{strange[0]!r} is unknown, expected names of: {wanted}; commas between")
        return names

    return read


def at_least(least: int) -> Callable[[str], int]:
    """Reads a whole number that is no smaller."""

    def read(text: str) -> int:
        if not text.lstrip("-").isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} was given, expected a whole number of at least {least}")
        return int(text)

    return read


def threads_of(workers: int) -> int | None:
    """An equal part of all cores for each worker; None, which changes nothing, where OMP_NUM_THREADS says it."""
    return None if os.environ.get("OMP_NUM_THREADS") else max((os.cpu_count() or 1) // workers, 1)
