"""Who is told what the reading of images does: it may take minutes, and leave a large file."""

from abc import ABC, abstractmethod
from pathlib import Path

__all__ = ["Unwatched", "Watch"]


class Watch(ABC):
    """Something that watches images being decoded: a progress bar, a line on a terminal."""

    @abstractmethod
    def decoded(self, done: int, total: int) -> None:
        """So many of all images are decoded."""

    @abstractmethod
    def kept(self, path: Path, n_bytes: int) -> None:
        """Decoded images were written to the cache, as a file of so many bytes."""


class Unwatched(Watch):
    """Nobody is told."""

    def decoded(self, done: int, total: int) -> None: ...

    def kept(self, path: Path, n_bytes: int) -> None: ...
