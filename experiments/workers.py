"""How the cells of an experiment share the cores of a machine."""

import os

__all__ = ["threads_of"]


def threads_of(workers: int) -> int | None:
    """An equal part of all cores for each worker; None, which changes nothing, where OMP_NUM_THREADS says it."""
    return None if os.environ.get("OMP_NUM_THREADS") else max((os.cpu_count() or 1) // workers, 1)
